"""ResourceQuotas: which of their limits count requests."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.resource_quotas import decode_resource_quota
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.policy_objects import ResourceQuota
from tests.builders import encoded


def decoded(**spec: Any) -> ResourceQuota:
    return decode_resource_quota(
        encoded({"metadata": {"name": "q", "namespace": "team-a"}, "spec": spec})
    )


@pytest.mark.parametrize(
    ("hard", "limits"),
    [
        ({}, {}),
        ({"cpu": "2", "requests.memory": "1Gi"}, {"cpu": 2000, "memory": 2**30}),
        ({"cpu": "2", "requests.cpu": "500m"}, {"cpu": 500}),
        ({"requests.nvidia.com/gpu": "0"}, {"nvidia.com/gpu": 0}),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": 4 * 2**20}),
        ({"requests.ephemeral-storage": "1k"}, {"ephemeral-storage": 1000}),
        ({"limits.cpu": "2", "pods": "3", "count/jobs.batch": "4", "requests.storage": "5"}, {}),
        ({"nvidia.com/gpu": "3", "gold.storageclass.storage.k8s.io/requests.storage": "5"}, {}),
    ],
)
def test_the_limits_of_requests(hard: dict[str, str], limits: dict[str, int]) -> None:
    assert decoded(hard=hard) == ResourceQuota("team-a", "q", limits)


@pytest.mark.parametrize(
    "scope",
    [
        {"scopes": ["BestEffort"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}},
    ],
)
def test_a_quota_with_scopes_limits_nothing(scope: dict[str, Any]) -> None:
    assert decoded(hard={"cpu": "2"}, **scope).hard == {}


def test_a_limit_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(ObjectError, match=r"spec\.hard\.cpu"):
        decoded(hard={"cpu": "many"})
