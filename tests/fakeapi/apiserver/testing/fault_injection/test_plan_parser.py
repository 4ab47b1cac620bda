"""Plans of fault injection, and the errors of invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.apiserver.testing.fault_injection.effects import (
    Conflict,
    Cut,
    Drop,
    Latency,
    Refusal,
    Silence,
)
from fakeapi.apiserver.testing.fault_injection.plan import ResourceName
from fakeapi.apiserver.testing.fault_injection.plan_parser import EFFECTS, parse_plan, read_plan
from fakeapi.testing.faults import fault

PLAN = b"""
seed: 7
faults:
- fault: 503
  retryAfter: 2
  match: {verbs: [create, patch], resources: [pods, apps/deployments], clients: "kubectl*"}
  times: 3
- {fault: drop, when: after, match: {verbs: create, resources: pods, subresources: binding}}
"""


def error_of(*rules: dict[str, Any], **fields: Any) -> str:
    document = fields if not rules else {"faults": list(rules), **fields}
    with pytest.raises(PlanError) as refused:
        parse_plan(document, BUILTIN, 0)
    return str(refused.value)


def test_a_plan_in_yaml_is_read() -> None:
    plan = read_plan(PLAN, BUILTIN, seed=1)
    first, second = plan.rules
    assert plan.seed == 7
    assert first.effect == Refusal(503, 2)
    assert first.scope.resources == (
        ResourceName(None, "pods"),
        ResourceName("apps", "deployments"),
    )
    assert (first.scope.verbs, first.scope.clients) == (("create", "patch"), ("kubectl*",))
    assert (first.limits.times, second.limits.times) == (3, None)
    assert second.effect == Drop("after", 0)


def test_a_plan_without_a_seed_has_the_default_seed() -> None:
    assert parse_plan({"faults": [{"fault": "compact"}]}, BUILTIN, 5).seed == 5


@pytest.mark.parametrize(
    ("rule", "effect"),
    [
        (fault("429"), Refusal(429, 1)),
        (fault(500), Refusal(500, 0)),
        (fault(403), Refusal(403)),
        (fault(409), Conflict()),
        (fault(403, message="exceeded quota"), Refusal(403, message="exceeded quota")),
        (fault("latency", seconds=2), Latency(2, 2)),
        (fault("latency", least=1, most=2, when="after"), Latency(1, 2, "after")),
        (fault("drop"), Drop("before", 0)),
        (fault("cut", end="clean", after_frames=2), Cut("clean", 2)),
        (fault("silence", seconds=30, after_frames=1), Silence(30, 1)),
        (fault("silence"), Silence(None, 0)),
    ],
)
def test_faults_are_built_by_chained_calls(rule: Any, effect: Any) -> None:
    plan = parse_plan({"faults": [rule.document()]}, BUILTIN, 0)
    assert plan.rules[0].effect == effect


def test_limits_are_built_by_chained_calls() -> None:
    rule = fault(500).on("create", "pods").by("a*").times(3).after(2).every(4).probability(0.5)
    limits = parse_plan({"faults": [rule.between(1, 9).document()]}, BUILTIN, 0).rules[0].limits
    assert (limits.times, limits.after, limits.every, limits.probability) == (3, 2, 4, 0.5)
    assert (limits.start, limits.end) == (1, 9)


def matching(name: int | str, **match: Any) -> dict[str, Any]:
    return {"fault": name, "match": match}


INVALID_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "no fault": ({}, "fault: expected one of 403, 429, 500,"),
    "an unknown fault": ({"fault": "flood"}, "fault: expected one of 403, 429, 500,"),
    "an unknown field": ({"fault": 500, "tmies": 3}, "tmies: no such field here; there"),
    "a field of another fault": (
        {"fault": "drop", "seconds": 3},
        "seconds: no such field here; there are: fault, when, afterFrames, match, times",
    ),
    "a message that is none": ({"fault": 403, "message": 3}, "message: expected a text, got 3"),
    "a message where words are fixed": (
        {"fault": 503, "message": "no"},
        "message: no such field here; there are: fault, retryAfter, match, times",
    ),
    "an unknown limit of requests": (
        matching(500, resource="pods"),
        "match.resource: no such field here; there are: clients, verbs, resources",
    ),
    "a probability beyond 1": (
        {"fault": 500, "probability": 1.5},
        "probability: expected a number above 0 and up to 1, got 1.5",
    ),
    "a probability of nothing": (
        {"fault": 500, "probability": 0},
        "probability: expected a number above 0 and up to 1, got 0",
    ),
    "a negative probability": (
        {"fault": 500, "probability": -1},
        "probability: expected a number of at least 0, got -1",
    ),
    "no times": ({"fault": 500, "times": 0}, "times: expected a whole number of at least"),
    "half a time": ({"fault": 500, "times": 0.5}, "times: expected a whole number"),
    "every none": ({"fault": 500, "every": 0}, "every: expected a whole number of at"),
    "true as a number": ({"fault": 500, "after": True}, "after: expected a whole number"),
    "an empty time": (
        {"fault": 500, "from": 9, "until": 9},
        "until: expected more than from, which is 9, got 9",
    ),
    "latency without seconds": (
        {"fault": "latency"},
        "seconds: expected seconds, or least and most, got nothing",
    ),
    "latency said twice": (
        {"fault": "latency", "seconds": 1, "most": 2},
        "seconds: expected either seconds, or least and most, got 1",
    ),
    "an empty range": (
        {"fault": "latency", "least": 3, "most": 2},
        "least: expected no more than most, which is 2, got 3",
    ),
    "a lag of nothing": ({"fault": "lag"}, "seconds: expected how long frames are held"),
    "frames before the request": (
        {"fault": "drop", "afterFrames": 2},
        "afterFrames: expected when: after, since before there is no frame, got 2",
    ),
    "an unknown verb": (
        matching(500, verbs="creat"),
        "match.verbs: no verb 'creat'; there are: create, delete, deletecollection",
    ),
    "a verb that is no text": (
        matching(500, verbs=[1]),
        "match.verbs: expected a text or a list of texts that are not empty, got [1]",
    ),
    "no verb at all": (
        matching(500, verbs=[]),
        "match.verbs: expected a text or a list of texts that are not empty, got []",
    ),
    "a lag of creates": (
        {"fault": "lag", "seconds": 1, "match": {"verbs": ["watch", "create"]}},
        "match.verbs: this fault does not apply to 'create', only to watch",
    ),
    "a stale get": (
        matching("stale", verbs="get"),
        "match.verbs: this fault does not apply to 'get', only to list and watch",
    ),
    "a conflict of a create": (
        matching(409, verbs=["update", "create"]),
        "match.verbs: this fault does not apply to 'create', only to update and patch",
    ),
    "a conflict of a review": (
        matching(409, resources="subjectaccessreviews"),
        "match.resources: 'subjectaccessreviews' cannot update or patch, so this fault never",
    ),
    "a silent subresource": (
        matching("silence", resources="pods", subresources="status"),
        "match.subresources: this fault applies to watch only, without subresources",
    ),
    "an unknown resource": (
        matching(500, resources=["pods", "podz"]),
        "match.resources: 'podz' is not served here; expected a plural such as pods",
    ),
    "a resource of another group": (
        matching(500, resources="apps/pods"),
        "match.resources: 'apps/pods' is not served here",
    ),
    "a subresource that the kind lacks": (
        matching(500, resources="configmaps", subresources="status"),
        "match.subresources: 'configmaps' has none of status; it has: none",
    ),
    "a subresource that nothing has": (
        matching(500, subresources="stauts"),
        "match.subresources: no resource here has 'stauts'",
    ),
    "a verb that the kind lacks": (
        matching(500, resources="tokenreviews", verbs="get"),
        "match.verbs: 'tokenreviews' cannot 'get'; it can: create",
    ),
    "a watch of what cannot be watched": (
        matching("expire", resources="tokenreviews"),
        "match.resources: 'tokenreviews' cannot watch",
    ),
    "a verb that the subresource lacks": (
        matching(500, resources="pods", subresources="binding", verbs="get"),
        "match.verbs: 'pods' cannot 'get'; it can: create",
    ),
    "a verb that no such subresource has": (
        matching(500, subresources="eviction", verbs="patch"),
        "match.verbs: 'eviction' can only create, not patch",
    ),
    "a namespace of cluster-wide things": (
        matching(500, resources="nodes", namespaces="default"),
        "match.namespaces: 'nodes' is in no namespace",
    ),
    "a name with a slash": (
        matching(500, names="default/web"),
        "match.names: no name can be like 'default/web'",
    ),
    "a path and a resource": (
        matching(500, paths="/version", resources="pods"),
        "match.resources: excludes paths; expected one of the two",
    ),
    "a path that is not there": (
        matching(500, paths="/apis/aps/*"),
        "match.paths: no path here is like '/apis/aps/*'",
    ),
    "the management": (
        matching(500, paths="/_fakeapi/*"),
        "match.paths: no path here is like '/_fakeapi/*'",
    ),
}


@pytest.mark.parametrize("name", INVALID_RULES)
def test_an_error_of_a_plan_names_its_field(name: str) -> None:
    rule, expected = INVALID_RULES[name]
    error = error_of(rule)
    assert error.startswith(f"faults[0].{expected}")
    assert "\n" not in error


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, "faults: expected a list of objects, got nothing"),
        ({"faults": []}, "faults: expected at least one fault, got []"),
        ({"faults": {}}, "faults: expected a list of objects, got {}"),
        ({"faults": [3]}, "faults[0]: expected an object, got 3"),
        (
            {"faults": [{"fault": 500}], "sead": 1},
            "sead: no such field here; there are: seed, faul",
        ),
        ({"faults": [{"fault": 500}], "seed": -1}, "seed: expected a whole number of at least 0"),
        ([], "plan: expected an object, got []"),
        ("x", 'plan: expected an object, got "x"'),
    ],
)
def test_an_invalid_plan_is_refused(document: Any, expected: str) -> None:
    with pytest.raises(PlanError) as refused:
        parse_plan(document, BUILTIN, 0)
    assert str(refused.value).startswith(expected)


def test_invalid_yaml_is_refused_in_one_line() -> None:
    with pytest.raises(PlanError, match=r"^plan: ") as refused:
        read_plan(b"faults: [\n{", BUILTIN, 0)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", EFFECTS)
def test_every_fault_is_built_and_described(name: str) -> None:
    options = {"seconds": 1} if name in ("latency", "lag") else {}
    plan = parse_plan({"faults": [fault(name, **options).document()]}, BUILTIN, 0)
    assert str(plan.rules[0].effect).startswith(name)
