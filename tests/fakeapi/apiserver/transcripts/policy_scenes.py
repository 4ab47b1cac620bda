"""Scenes of mutating admission policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakeapi.apiserver.transcripts.steps import (
    DEPLOYMENTS,
    MAPS,
    MUTATING_BINDINGS,
    MUTATING_POLICIES,
    TEMPLATE,
    Step,
    config_map,
    delete,
    get,
    patch,
    post,
    put,
)

_NAMED = {"matchLabels": {"kubernetes.io/metadata.name": "scene"}}
_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
_DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
_WRITES = {"operations": ["CREATE", "UPDATE"]}
_DEPLOYMENT = {
    "metadata": {"name": "a"},
    "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": TEMPLATE},
}


def configuration(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(name: str, *mutations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    rules = spec.pop("rules", [{**_MAPS, **_WRITES}])
    constraints = {"resourceRules": rules, "namespaceSelector": _NAMED}
    common = {"matchConstraints": constraints, "reinvocationPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": {**common, "mutations": [*mutations], **spec}}


def binding(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"policyName": name, **spec}}


def _bound(name: str, *mutations: dict[str, Any], **spec: Any) -> Iterator[Step]:
    yield post(MUTATING_BINDINGS, binding(name))
    yield post(MUTATING_POLICIES, policy(name, *mutations, **spec))


def _end(name: str) -> Iterator[Step]:
    yield delete(f"{MUTATING_POLICIES}/{name}")
    yield delete(f"{MUTATING_BINDINGS}/{name}")


def _tried(name: str, *mutations: dict[str, Any], **spec: Any) -> Iterator[Step]:
    """Write a policy, and objects that it matches; then delete all of them."""
    yield from _bound(name, *mutations, **spec)
    if "rules" in spec:
        yield post(DEPLOYMENTS, _DEPLOYMENT, dryRun="All")
    else:
        yield post(MAPS, config_map(name))
        yield patch(f"{MAPS}/{name}", {"data": {"y": "2"}})
        yield delete(f"{MAPS}/{name}")
    yield from _end(name)


_CONFIGURATIONS = (
    "Object{metadata: Object.metadata{annotations: {'mutated': 'by-' + object.metadata.name}}}",
    "Object{data: {'z': string(size(object.data))}}",
    "Object{data: Object.data{z: 'a'}}",
    "Object{data: {'z': 1}}",
    "Object{data: {'x': dyn(null)}}",
    "Object{nothing: 'a'}",
    "Object{data: Object.wrong{z: 'a'}}",
    "Object{metadata: Object.metadata{name: 'other'}}",
    (
        "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{"
        "apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'b'}]}}"
    ),
    "Object{data: {'z': object.data.missing}}",
    "Object{?data: optional.none()}",
    "Object{data: {?'z': object.?data.?x}}",
    "has(object.data.x) ? Object{data: {'z': 'has'}} : Object{}",
    "Object{apiVersion: 'v2'}",
)
_PATCHES = (
    "[JSONPatch{op: 'add', path: '/data/z', value: 'a'}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
    "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('~z/'), value: 'a'}]",
    (
        "[JSONPatch{op: 'test', path: '/data/x', value: 'no'},"
        " JSONPatch{op: 'add', path: '/data/z', value: 'a'}]"
    ),
    (
        "[JSONPatch{op: 'test', path: '/data/x', value: '1'},"
        " JSONPatch{op: 'move', from: '/data/x', path: '/data/z'}]"
    ),
    "[JSONPatch{op: 'copy', from: '/data/x', path: '/data/z'}]",
    "[JSONPatch{op: 'remove', path: '/data/missing'}]",
    "[JSONPatch{op: 'replace', path: '/data/missing', value: 'a'}]",
    "[JSONPatch{op: 'add', path: '/missing/a', value: 'a'}]",
    "[JSONPatch{op: 'nothing', path: '/data/z', value: 'a'}]",
    "[JSONPatch{op: 'add', path: '/data/z', value: 1}]",
    "[JSONPatch{op: 'add', path: '/nothing', value: 'a'}]",
    "[JSONPatch{op: 'add', path: '/metadata', value: Object.metadata{name: 'a'}}]",
    "[JSONPatch{op: 'add', path: '/data', value: Object.data{z: 'a'}}]",
    "[JSONPatch{op: 'add', path: '/kind', value: 'Other'}]",
    "[]",
)
_OF_DEPLOYMENTS = (
    "Object{metadata: Object.metadata{finalizers: ['a.example.com/b']}}",
    "Object{spec: Object.spec{replicas: 3}}",
    (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        "containers: [Object.spec.template.spec.containers{name: 'c', image: 'other'},"
        " Object.spec.template.spec.containers{name: 'side', image: 'i'}]}}}}"
    ),
    (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        "containers: [Object.spec.template.spec.containers{image: 'other'}]}}}}"
    ),
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'c': 'd'}}}}",
    "Object{spec: Object.spec{replicas: 'a'}}",
    (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        "tolerations: [Object.spec.template.spec.tolerations{key: 'a', operator: 'Exists'}]}}}}"
    ),
    "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
)


def mutations() -> Iterator[Step]:
    for expression in _CONFIGURATIONS:
        yield from _tried("a", configuration(expression))
    for expression in _PATCHES:
        yield from _tried("a", json_patch(expression))
    for expression in _OF_DEPLOYMENTS:
        rules = [{**_DEPLOYMENTS, **_WRITES}]
        yield from _tried("a", configuration(expression), rules=rules)


def mutating_policies() -> Iterator[Step]:
    add_z = configuration("Object{data: {'z': string(size(object.data))}}")
    missing = configuration("Object{data: {'z': object.data.missing}}")
    yield from _tried("a", add_z, add_z, json_patch("[JSONPatch{op:'remove', path: '/data/x'}]"))
    yield from _tried("a", missing, add_z, failurePolicy="Ignore")
    yield from _tried("a", missing, missing)
    yield from _tried("a", add_z, matchConditions=[{"name": "n", "expression": "false"}])
    condition = {"name": "n", "expression": "object.data.missing == 'a'"}
    yield from _tried("a", add_z, matchConditions=[condition])
    variables = [
        {"name": "v", "expression": "{'z': object.metadata.name}"},
        {"name": "broken", "expression": "object.data.missing"},
    ]
    used = configuration("Object{data: variables.v}")
    yield from _tried("a", used, variables=variables)
    used = configuration("Object{data: {'z': variables.broken}}")
    yield from _tried("a", used, variables=variables)
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    from_params = configuration("Object{data: {'z': params.data.x}}")
    only_b = {"matchResources": {"objectSelector": {"matchLabels": {"mutated": "yes"}}}}
    for reference in (
        {"name": "params", "parameterNotFoundAction": "Deny"},
        {"name": "missing", "parameterNotFoundAction": "Deny"},
        {"name": "missing", "parameterNotFoundAction": "Allow"},
    ):
        yield post(MAPS, config_map("params", labels={"p": "q"}))
        yield post(MUTATING_BINDINGS, binding("a", paramRef=reference, **only_b))
        yield post(MUTATING_POLICIES, policy("a", from_params, **kind))
        yield post(MAPS, config_map("no"))
        yield post(MAPS, config_map("b", labels={"mutated": "yes"}))
        yield delete(MAPS)
        yield from _end("a")
    yield from _bound("a", from_params, paramKind={"apiVersion": "v1", "kind": "Missing"})
    yield post(MAPS, config_map())
    yield delete(MAPS)
    yield from _end("a")
    yield post(MUTATING_POLICIES, policy("a", add_z))  # without a binding
    yield post(MAPS, config_map())
    yield put(f"{MAPS}/a", config_map(), dryRun="All")
    yield get(f"{MAPS}/a")
    yield delete(f"{MUTATING_POLICIES}/a")


def mutating_policy_errors() -> Iterator[Step]:
    good = configuration("Object{}")
    specs: tuple[dict[str, Any], ...] = (
        {"reinvocationPolicy": ""},
        {"reinvocationPolicy": "Always"},
        {"failurePolicy": "Never"},
        {"matchConstraints": None},
        {"matchConstraints": {"resourceRules": []}},
        {"paramKind": {"apiVersion": "a/b/c", "kind": ""}},
        {"mutations": []},
        {"mutations": None},
        {"mutations": [{}]},
        {"mutations": [{"patchType": "Merge"}]},
        {"mutations": [{"patchType": "JSONPatch"}]},
        {"mutations": [{"patchType": "ApplyConfiguration"}]},
        {"mutations": [{**good, **json_patch("[]")}]},
        {"mutations": [{**json_patch("[]"), **good}]},
        {"mutations": [configuration(" "), json_patch(" ")]},
        {"mutations": [configuration("1"), json_patch("1")]},
        {"variables": [{"name": "a", "expression": "Object{}"}]},
        {"variables": [{"name": "", "expression": ""}]},
        {"matchConditions": [{"name": "", "expression": "1"}]},
        {"rules": [{**_MAPS, "operations": ["CREATE", "DELETE", "CONNECT"]}]},
        {"rules": [{**_MAPS, "operations": ["*"]}]},
    )
    for spec in specs:
        yield post(MUTATING_POLICIES, policy("a", good, **spec), dryRun="All")
    yield post(MUTATING_POLICIES, {"metadata": {"name": "a"}, "spec": {}}, dryRun="All")
    deleting = {"resourceRules": [{**_MAPS, "operations": ["DELETE"]}]}
    bindings: tuple[dict[str, Any], ...] = (
        {},
        {"policyName": ""},
        {"policyName": "A B"},
        {"paramRef": {}},
        {"paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}},
        {"matchResources": deleting},
        {"matchResources": {"matchPolicy": "None"}},
    )
    for bound in bindings:
        yield post(MUTATING_BINDINGS, binding("a", **bound), dryRun="All")
