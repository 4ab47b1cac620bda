"""LimitRanger admission: defaults, minima, maxima and ratios, in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import pod_request
from tests.fakeapi.api_requests import DEFAULT, PODS, Ask

RANGES = f"{DEFAULT}/limitranges"
CLAIMS = f"{DEFAULT}/persistentvolumeclaims"


def limit(ask: Ask, kind: str = "Container", **fields: Any) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": kind, **fields}]}}
    status, answer = ask("POST", RANGES, body)
    assert status == 201, answer


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def test_containers_get_missing_requests_and_limits_and_the_pod_an_annotation(ask: Ask) -> None:
    limit(ask, default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    containers = [container("a"), container("b", requests={"cpu": "500m"}, limits={"cpu": "1"})]
    pod = pod_request(containers=containers, initContainers=[container("i")])
    _, created = ask("POST", PODS, pod)
    both = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    spec = created["spec"]
    assert [each["resources"] for each in (*spec["containers"], *spec["initContainers"])] == [
        both,
        {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        both,
    ]
    assert created["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for "
        "container a; memory request for container b; memory limit for container b; cpu, memory "
        "request for init container i; cpu, memory limit for init container i"
    )


REQUESTS: Any = {"requests": {"cpu": "1"}}
BOTH: Any = {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}


@pytest.mark.parametrize(
    ("kind", "rule", "resources", "detail"),
    [
        (
            "Pod",
            {"min": {"memory": "1Gi"}},
            BOTH,
            "minimum memory usage per Pod is 1Gi.  No request is specified",
        ),
        (
            "Container",
            {"min": {"cpu": "2"}},
            BOTH,
            "minimum cpu usage per Container is 2, but request is 1",
        ),
        (
            "Container",
            {"max": {"cpu": "2"}},
            BOTH,
            "maximum cpu usage per Container is 2, but limit is 3",
        ),
        (
            "Pod",
            {"max": {"cpu": "2"}},
            REQUESTS,
            "maximum cpu usage per Pod is 2.  No limit is specified",
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            BOTH,
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            REQUESTS,
            (
                "cpu max limit to request ratio per Container is 2, but no limit is specified or "
                "limit is 0"
            ),
        ),
        (
            "Pod",
            {"max": {"cpu": "2"}, "maxLimitRequestRatio": {"memory": "2"}},
            BOTH,
            (
                "[maximum cpu usage per Pod is 2, but limit is 3, memory max limit to request "
                "ratio per Pod is 2, but no request is specified or request is 0]"
            ),
        ),
    ],
    ids=["no request", "min", "max", "no limit", "ratio", "ratio without limit", "several"],
)
def test_a_pod_that_breaks_a_rule_is_refused(
    ask: Ask, kind: str, rule: dict[str, Any], resources: Any, detail: str
) -> None:
    limit(ask, kind, **rule)
    status, refusal = ask("POST", PODS, pod_request(containers=[container(**resources)]))
    assert (status, refusal["message"]) == (403, f'pods "p" is forbidden: {detail}')


@pytest.mark.parametrize("count", [1, 2])
def test_a_pod_is_limited_by_the_sum_of_its_containers(ask: Ask, count: int) -> None:
    limit(ask, "Pod", max={"cpu": "5"})
    containers = [container(f"c{number}", **BOTH) for number in range(count)]
    assert (ask("POST", PODS, pod_request(containers=containers))[0] == 201) is (count == 1)


def test_a_resize_is_limited_and_another_update_is_not(ask: Ask) -> None:
    ask("POST", PODS, pod_request(containers=[container(**BOTH)]))
    limit(ask, max={"cpu": "2"})
    assert ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})[0] == 200
    larger = {"spec": {"containers": [container(requests={"cpu": "1"}, limits={"cpu": "4"})]}}
    status, refusal = ask("PATCH", f"{PODS}/p/resize", larger)
    assert (status, refusal["message"].partition("forbidden: ")[2]) == (
        403,
        "maximum cpu usage per Container is 2, but limit is 4",
    )


def claim(storage: str) -> dict[str, Any]:
    resources = {"requests": {"storage": storage}}
    return {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
    }


@pytest.mark.parametrize(
    ("storage", "detail"),
    [
        ("1Gi", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
        ("9Gi", "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 9Gi"),
    ],
)
def test_a_claim_is_limited_when_created_and_updated(ask: Ask, storage: str, detail: str) -> None:
    limit(ask, "PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "4Gi"})
    refusal = f'persistentvolumeclaims "c" is forbidden: {detail}'
    assert ask("POST", CLAIMS, claim(storage))[1]["message"] == refusal
    assert ask("POST", CLAIMS, claim("3Gi"))[0] == 201
    assert ask("PUT", f"{CLAIMS}/c", claim(storage))[1]["message"] == refusal
