"""ResourceQuotas and LimitRanges that contradict themselves, with upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakeapi.api_requests import DEFAULT, Ask

QUOTAS = f"{DEFAULT}/resourcequotas"
RANGES = f"{DEFAULT}/limitranges"


def refusals(answer: tuple[int, Any]) -> list[tuple[str, str]]:
    """Return field and message of each error of a 422; nothing if the request succeeds."""
    status, body = answer
    if status < 400:
        return []
    assert status == 422, body
    return [(cause["field"], cause["message"]) for cause in body["details"]["causes"]]


def quota(hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


def selector(scope: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"scopeName": scope, "operator": operator, "values": [*values]}
    return {"matchExpressions": [expression]}


MATCH = "spec.scopeSelector.matchExpressions"
NOT_APPLICABLE = "unsupported scope applied to resource"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        pytest.param(
            quota({"pods": "1", "count/widgets.example.com": "1", "requests.example.com/gpu": "2"}),
            [],
            id="valid",
        ),
        pytest.param(
            quota({"pets": "1"}),
            [
                (
                    "spec.hard[pets]",
                    'Invalid value: "pets": must be a standard resource type or fully qualified',
                ),
                (
                    "spec.hard[pets]",
                    'Invalid value: "pets": must be a standard resource for quota',
                ),
            ],
            id="an unknown resource",
        ),
        pytest.param(
            quota({"cpu": "-1", "pods": "1500m"}),
            [
                ("spec.hard[cpu]", 'Invalid value: "-1": must be greater than or equal to 0'),
                ("spec.hard[pods]", 'Invalid value: "1500m": must be an integer'),
            ],
            id="amounts that cannot be",
        ),
        pytest.param(
            quota({"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
            [
                (
                    "spec.scopes",
                    'Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
                )
            ],
            id="scopes that exclude each other",
        ),
        pytest.param(
            quota({"cpu": "1"}, scopes=["BestEffort"]),
            [("spec.scopes", f'Invalid value: ["BestEffort"]: {NOT_APPLICABLE}')],
            id="a scope that has no such resource",
        ),
        pytest.param(
            quota({"pods": "1"}, scopes=["Tall"]),
            [("spec.scopes", 'Invalid value: ["Tall"]: unsupported scope')],
            id="an unknown scope",
        ),
        pytest.param(
            quota({"pods": "1"}, scopeSelector=selector("PriorityClass", "In")),
            [
                (
                    f"{MATCH}.values",
                    (
                        "Required value: must be at least one value when `operator` is 'In' or "
                        "'NotIn' for scope selector"
                    ),
                )
            ],
            id="no value",
        ),
        pytest.param(
            quota({"services": "1"}, scopeSelector=selector("PriorityClass", "Exists", "a")),
            [
                (
                    MATCH,
                    (
                        'Invalid value: {"MatchExpressions":[{"ScopeName":"PriorityClass",'
                        f'"Operator":"Exists","Values":["a"]}}]}}: {NOT_APPLICABLE}'
                    ),
                ),
                (
                    f"{MATCH}.values",
                    (
                        "Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or "
                        "'DoesNotExist' for scope selector"
                    ),
                ),
            ],
            id="a value too many",
        ),
    ],
)
def test_a_quota_that_contradicts_itself_is_refused(
    ask: Ask, body: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    assert refusals(ask("POST", QUOTAS, body)) == errors


def test_the_scopes_of_a_quota_are_immutable(ask: Ask) -> None:
    assert ask("POST", QUOTAS, quota({"pods": "1"}, scopes=["Terminating"]))[0] == 201
    assert ask("PUT", f"{QUOTAS}/q", quota({"pods": "2"}, scopes=["Terminating"]))[0] == 200
    assert refusals(ask("PUT", f"{QUOTAS}/q", quota({"pods": "2"}))) == [
        ("spec.scopes", "Invalid value: null: field is immutable")
    ]


def test_the_status_of_a_quota_is_validated(ask: Ask) -> None:
    ask("POST", QUOTAS, quota({"pods": "1"}))
    status = {**quota({"pods": "1"}), "status": {"used": {"pods": "-1"}}}
    assert refusals(ask("PUT", f"{QUOTAS}/q/status", status)) == [
        ("status.used[pods]", 'Invalid value: "-1": must be greater than or equal to 0')
    ]


FIRST = "spec.limits[0]"


@pytest.mark.parametrize(
    ("limit", "errors"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}}, [], id="valid"
        ),
        pytest.param(
            {"type": "Node", "min": {"cpu": "1"}},
            [
                (
                    f"{FIRST}.type",
                    'Invalid value: "Node": must be a standard limit type or fully qualified',
                )
            ],
            id="an unknown type",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            [
                (
                    f"{FIRST}.min[cpu]",
                    'Invalid value: "2": min value 2 is greater than max value 1',
                )
            ],
            id="min above max",
        ),
        pytest.param(
            {"type": "Container", "default": {"cpu": "3"}, "max": {"cpu": "2"}},
            [
                (
                    f"{FIRST}.defaultRequest[cpu]",
                    'Invalid value: "3": default request value 3 is greater than max value 2',
                ),
                (
                    f"{FIRST}.default[cpu]",
                    'Invalid value: "2": default value 3 is greater than max value 2',
                ),
            ],
            id="a default above max",
        ),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "1"}},
            [(f"{FIRST}.default", "Forbidden: may not be specified when `type` is 'Pod'")],
            id="a default of a pod",
        ),
        pytest.param(
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            [
                (
                    f"{FIRST}.maxLimitRequestRatio[cpu]",
                    'Invalid value: "3": ratio 3 is greater than max/min = 2.000000',
                )
            ],
            id="a ratio that max and min exclude",
        ),
        pytest.param(
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
            [
                (
                    f"{FIRST}.maxLimitRequestRatio[cpu]",
                    'Invalid value: "500m": ratio 500m is less than 1',
                )
            ],
            id="a ratio below 1",
        ),
        pytest.param(
            {"type": "PersistentVolumeClaim", "min": {"cpu": "1"}},
            [
                (
                    f"{FIRST}.limits",
                    (
                        "Required value: either minimum or maximum storage value is required, but "
                        "neither was provided"
                    ),
                )
            ],
            id="claims without storage",
        ),
    ],
)
def test_a_limit_range_that_contradicts_itself_is_refused(
    ask: Ask, limit: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
    assert refusals(ask("POST", RANGES, body)) == errors


def test_a_limit_range_has_each_type_once(ask: Ask) -> None:
    limits = [{"type": "Pod", "min": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "2"}}]
    body = {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    assert refusals(ask("POST", RANGES, body)) == [
        ("spec.limits[1].type", 'Duplicate value: "Pod"')
    ]
