"""Which pods a pod's Services and its controller select together."""

from __future__ import annotations

import pytest

from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    PodOwner,
    PodSelectingObject,
    default_selector,
)
from policies.kubernetes.selectors import LabelSelector, Requirement
from tests.builders import workload

LABELS = {"app": "web", "hash": "5d4"}
SOME_HASH = Requirement("hash", "Exists")


def app(name: str) -> Requirement:
    return Requirement("app", "In", (name,))


CASES: dict[
    str, tuple[tuple[PodSelectingObject, ...], PodOwner | None, tuple[Requirement, ...]]
] = {
    "nothing selects it": ((), None, ()),
    "a Service that matches": ((workload(SERVICE, "s", {"app": "web"}),), None, (app("web"),)),
    "a Service that does not": ((workload(SERVICE, "s", {"app": "db"}),), None, ()),
    "a Service without a selector": ((workload(SERVICE, "s", None),), None, ()),
    "a Service for all pods adds nothing": ((workload(SERVICE, "s", {}),), None, ()),
    "Services are merged key by key": (
        (workload(SERVICE, "s", {"app": "web"}), workload(SERVICE, "t", LABELS)),
        None,
        (app("web"), Requirement("hash", "In", ("5d4",))),
    ),
    "a controller that matches but is not the pod's": (
        (workload(REPLICA_SET, "r", {"app": "web"}),),
        None,
        (),
    ),
    "a controller of another kind with the same name": (
        (workload(STATEFUL_SET, "r", {"app": "web"}),),
        PodOwner(REPLICA_SET, "r"),
        (),
    ),
    "a controller that is gone": ((), PodOwner(REPLICA_SET, "r"), ()),
    "the controller's expressions come on top": (
        (
            PodSelectingObject(REPLICA_SET, "default", "r", LabelSelector((SOME_HASH,))),
            workload(SERVICE, "s", {"app": "web"}),
        ),
        PodOwner(REPLICA_SET, "r"),
        (app("web"), SOME_HASH),
    ),
    "a StatefulSet as well": (
        (workload(STATEFUL_SET, "s", {"app": "web"}),),
        PodOwner(STATEFUL_SET, "s"),
        (app("web"),),
    ),
    "a ReplicationController's labels win over a Service's": (
        (
            workload(SERVICE, "s", {"app": "web"}),
            workload(REPLICATION_CONTROLLER, "c", {"app": "other"}),
        ),
        PodOwner(REPLICATION_CONTROLLER, "c"),
        (app("other"),),
    ),
}


@pytest.mark.parametrize(("workloads", "controller", "expected"), CASES.values(), ids=CASES)
def test_the_default_selector_combines_the_objects_that_select_a_pod(
    workloads: tuple[PodSelectingObject, ...],
    controller: PodOwner | None,
    expected: tuple[Requirement, ...],
) -> None:
    assert default_selector(LABELS, controller, workloads).requirements == expected
