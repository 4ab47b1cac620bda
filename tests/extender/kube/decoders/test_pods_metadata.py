"""Pods: when they started, who controls them, and whether they say how to be spread."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from extender.kube.decoders.pods import decode_pod, epoch_ns
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.releases import NEWEST
from tests.builders import Document, encoded, pod_json


@pytest.mark.parametrize(
    ("moment", "ns"),
    [
        (datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC), 7 * 10**9),
        (datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC).replace(tzinfo=None), 7 * 10**9),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -(10**9)),
        (datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC), 9_223_372_036 * 10**9),
        (datetime(2262, 4, 11, 23, 47, 17, tzinfo=UTC), 2**63 - 1),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), 2**63 - 1),
        (datetime(1, 1, 1, tzinfo=UTC), 1 - 2**63),
    ],
)
def test_a_time_beyond_what_int64_holds_is_the_last_that_it_holds(
    moment: datetime, ns: int
) -> None:
    assert epoch_ns(moment) == ns
    assert -(2**63) < -epoch_ns(moment) < 2**63


def test_a_pod_that_starts_at_the_end_of_time_is_read() -> None:
    document = pod_json(status={"startTime": "9999-12-31T23:59:59Z"})
    assert decode_pod(encoded(document), NEWEST).started_ns == 2**63 - 1


def owned(*references: Document) -> PodOwner | None:
    document = pod_json(metadata={"ownerReferences": list(references)})
    return decode_pod(encoded(document), NEWEST).controller


def reference(api_version: str, kind: str, *, controller: bool | None = True) -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": "web", "controller": controller}


@pytest.mark.parametrize(
    ("api_version", "kind", "followed"),
    [
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", True),
        ("v1", "ReplicationController", True),
        ("apps/v1", "DaemonSet", False),
        ("batch/v1", "Job", False),
        ("apps/v1beta1", "StatefulSet", False),
        ("v1", "ReplicaSet", False),
    ],
)
def test_the_controller_of_a_pod_is_known_if_it_is_of_a_kind_that_spreads_pods(
    api_version: str, kind: str, *, followed: bool
) -> None:
    found = owned(reference(api_version, kind))
    assert found == (PodOwner(kind, "web") if followed else None)


def test_only_the_owner_that_controls_a_pod_counts() -> None:
    mere = reference("apps/v1", "StatefulSet", controller=None)
    assert owned(mere) is None
    assert owned(mere, reference("apps/v1", "ReplicaSet")) == PodOwner("ReplicaSet", "web")
    job = reference("batch/v1", "Job")
    assert owned(job, reference("apps/v1", "ReplicaSet")) is None


@pytest.mark.parametrize(
    ("actions", "soft"),
    [
        ((), False),
        (("DoNotSchedule",), False),
        (("ScheduleAnyway",), True),
        (("DoNotSchedule", "ScheduleAnyway"), True),
    ],
)
def test_constraints_that_need_not_hold_are_remembered_to_be_there(
    actions: tuple[str, ...], *, soft: bool
) -> None:
    constraints = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action} for action in actions
    ]
    document = pod_json(spec={"topologySpreadConstraints": constraints})
    assert decode_pod(encoded(document), NEWEST).soft_spread is soft
