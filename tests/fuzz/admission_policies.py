"""Random admission policies, with their bindings, and the objects that they are about."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.fakeapi.admission_policies import matching
from tests.fakeapi.admission_webhooks import GROUP
from tests.fuzz.mutation import TEXTS, pick
from tests.fuzz.schemas import random_expression

Posted = tuple[str, Any]

RESOURCES: Final = ("configmaps", "deployments", "pods", "leases")
_PATHS: Final = ("/data/a", "/metadata/labels", "/spec", "", "/kind", "/a/-", "/metadata/name", "a")
_EXPRESSIONS: Final = (
    "object",
    "object.data.a",
    "object.metadata.labels",
    "object.spec.containers.map(c, c.name)",
    "oldObject.data",
    "has(object.data) ? object.data : dyn(1)",
    "request.name",
    "request.userInfo.groups",
    "namespaceObject.metadata.labels",
    "authorizer.requestResource.check('get').allowed()",
    "'a'",
    "1",
    "true",
    "[1, 2].map(x, x + 1)",
    "dyn(timestamp('2026-01-01T00:00:00Z'))",
    "b'a'",
    "quantity('1')",
    "{'a': dyn({'b': dyn(1)})}",
)
_FIELDS: Final = ("data", "metadata", "spec", "labels", "template", "containers", "a")


def random_policies(rng: Random) -> list[Posted]:
    """Return a policy and its binding, as a path and a body each."""
    kind = pick(rng, ("mutating", "validating"))
    spec: dict[str, Any] = {
        "matchConstraints": matching(*RESOURCES),
        "failurePolicy": pick(rng, ("Fail", "Ignore")),
        "variables": [{"name": "a", "expression": _expression(rng)}],
    }
    if rng.random() < 0.3:
        spec["matchConditions"] = [{"name": "c", "expression": f"dyn({_expression(rng)}) == true"}]
    bound: dict[str, Any] = {"policyName": "a"}
    if kind == "mutating":
        spec["reinvocationPolicy"] = pick(rng, ("Never", "IfNeeded"))
        spec["mutations"] = [_mutation(rng) for _ in range(rng.randrange(1, 3))]
    else:
        spec["validations"] = [
            {"expression": f"dyn({_expression(rng)}) != {_expression(rng)}"},
            {"expression": _expression(rng), "messageExpression": f"string({_expression(rng)})"},
        ][rng.randrange(2) :]
        bound["validationActions"] = ["Deny"]
    named = {"metadata": {"name": "a"}}
    return [
        (f"{GROUP}/{kind}admissionpolicies", {**named, "spec": spec}),
        (f"{GROUP}/{kind}admissionpolicybindings", {**named, "spec": bound}),
    ]


def _mutation(rng: Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        patch = {"expression": f"[{_json_patch(rng)}, {_json_patch(rng)}]"}
        return {"patchType": "JSONPatch", "jsonPatch": patch}
    return {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": _message(rng, "Object", 0)},
    }


def _json_patch(rng: Random) -> str:
    operation = pick(rng, ("add", "remove", "replace", "move", "copy", "test", "x"))
    path = repr(pick(rng, (*_PATHS, *TEXTS[:5])))
    value = _value(rng, "Object", 1)
    return f"JSONPatch{{op: '{operation}', path: {path}, from: '/data/a', value: {value}}}"


def _message(rng: Random, name: str, depth: int) -> str:
    fields = [
        f"{pick(rng, ('', '', '?'))}{field}: {_value(rng, f'{name}.{field}', depth + 1)}"
        for field in (pick(rng, _FIELDS) for _ in range(rng.randrange(1, 3)))
    ]
    return f"{name}{{{', '.join(fields)}}}"


def _value(rng: Random, name: str, depth: int) -> str:
    draw = rng.random()
    if draw < 0.4 and depth < 5:
        return _message(rng, name, depth)
    if draw < 0.5:
        return f"[{_value(rng, name, depth + 1)}]"
    if draw < 0.7:
        return f"{{'a': {_expression(rng)}}}"
    return pick(rng, ("'a'", "1", "dyn(null)", "variables.a", "object.?data.?a", _expression(rng)))


def _expression(rng: Random) -> str:
    """Return an expression, most often one whose types are valid."""
    if rng.random() < 0.9:
        return pick(rng, _EXPRESSIONS)
    return random_expression(rng).replace("self", "object").replace("oldSelf", "oldObject")
