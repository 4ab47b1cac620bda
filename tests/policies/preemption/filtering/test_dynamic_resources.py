"""DynamicResources: allocated claims, and claims of other pods."""

from __future__ import annotations

from typing import Any

import pytest

from policies import RELEASES, SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.snapshot import Snapshot
from policies.kubernetes.storage import DeviceClaim, ResourceClaim, StorageKind
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from tests.builders import node, pod, snapshot

FILTER = filters_named(["DynamicResources"])
RULES = SchedulerRules(filters=FILTER)
GPU = DeviceClaim("gpu", "gpu")
MADE = DeviceClaim("gpu", "pod-gpu-x", templated=True)


def device(name: str = "gpu", on: str | None = None, **fields: Any) -> ResourceClaim:
    """Build an allocated claim, usable on the node ``on`` alone or anywhere."""
    by_name = NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (on or "",)),))
    reach = None if on is None else NodeSelector((by_name,))
    return ResourceClaim("default", name, nodes=reach, **{"allocated": True, **fields})


def cluster(*claims: ResourceClaim, unknown: tuple[StorageKind, ...] = ()) -> Snapshot:
    return snapshot(node("node-1"), node("node-2"), *claims, unknown=unknown)


def refusals(moment: Snapshot, *asked: DeviceClaim, release: str = "1.37") -> dict[str, Rejection]:
    rules = SchedulerRules(RELEASES[release], FILTER)
    return dict(decide_filter(pod(devices=asked), moment, rules).rejected)


def test_devices_of_one_node_are_of_no_use_on_another() -> None:
    found = refusals(cluster(device(on="node-1")), GPU)
    assert found == {"node-2": unresolvable(Code.DEVICES_ELSEWHERE, "claim default/gpu")}
    assert str(found["node-2"]) == "resourceclaim not available on the node"


def test_all_claims_must_be_usable() -> None:
    moment = cluster(device("a", on="node-1"), device("b", on="node-2"), device("c"))
    asked = [DeviceClaim(name, name) for name in "abc"]
    assert set(refusals(moment, *asked)) == {"node-1", "node-2"}
    assert refusals(moment, asked[2]) == {}
    assert refusals(moment) == {}


CONFLICTS = {
    "a claim that does not exist": (GPU, (), 'could not find ResourceClaim "default/gpu"'),
    "a claim that is being deleted": (
        GPU,
        (device(deleting=True),),
        'resourceclaim "gpu" is being deleted',
    ),
    "a claim that is yet to be made from its template": (
        DeviceClaim("gpu", None, templated=True),
        (),
        'pod "default/pod": ResourceClaim not created yet',
    ),
    "a reference to nothing": (
        DeviceClaim("gpu", None),
        (),
        'pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set',
    ),
    "a claim that was made for another pod": (
        MADE,
        (device("pod-gpu-x", owner="other"),),
        "ResourceClaim default/pod-gpu-x was not created for Pod default/pod (Pod is not owner)",
    ),
}


@pytest.mark.parametrize(("asked", "claims", "words"), CONFLICTS.values(), ids=CONFLICTS)
def test_claims_that_the_pod_cannot_use(
    asked: DeviceClaim, claims: tuple[ResourceClaim, ...], words: str
) -> None:
    decision = decide_filter(pod(devices=[asked]), cluster(*claims), RULES)
    assert decision.conflict is not None
    assert (str(decision.conflict), decision.conflict.resolvable) == (words, False)
    assert decision.not_evaluated == set()


def test_the_messages_of_older_releases() -> None:
    moment = cluster(device("pod-gpu-x", owner="other"))
    assert str(refusals(moment, MADE, release="1.35")["node-1"]).endswith(
        "was not created for pod default/pod (pod is not owner)"
    )


def test_a_claim_that_was_made_for_the_pod_is_its_own() -> None:
    assert refusals(cluster(device("pod-gpu-x", owner="pod")), MADE) == {}


def test_a_named_claim_may_have_any_owner() -> None:
    assert refusals(cluster(device(owner="other")), GPU) == {}


@pytest.mark.parametrize(("release", "judged"), [("1.33", False), ("1.34", True)])
def test_claims_are_evaluated_since_they_are_on_by_default(release: str, *, judged: bool) -> None:
    assert bool(refusals(cluster(), GPU, release=release)) is judged


@pytest.mark.parametrize(
    ("claims", "release", "open_"),
    [
        ((device(conditional=True),), "1.35", False),
        ((device(conditional=True),), "1.36", True),
    ],
)
def test_binding_conditions_leave_the_pod_unevaluated(
    claims: tuple[ResourceClaim, ...], release: str, *, open_: bool
) -> None:
    rules = SchedulerRules(RELEASES[release], FILTER)
    decision = decide_filter(pod(devices=[GPU]), cluster(*claims), rules)
    assert decision.feasible == ("node-1", "node-2")
    assert decision.not_evaluated == ({"DynamicResources"} if open_ else set())


def test_an_unknown_claim_leaves_the_pod_unevaluated() -> None:
    moment = cluster(unknown=(StorageKind.DEVICES,))
    decision = decide_filter(pod(devices=[GPU]), moment, RULES)
    assert decision.conflict is None
    assert decision.not_evaluated == {"DynamicResources"}


def test_eviction_does_not_help_a_pod_whose_devices_are_elsewhere() -> None:
    moment = snapshot(
        node("node-2", cpu="1"), pod("low", on="node-2", cpu="1"), device(on="node-1")
    )
    preemptor = pod("vip", cpu="1", priority=10, devices=[GPU])
    assert decide_preemption(preemptor, moment, SchedulerRules()).candidates == {}


@pytest.mark.parametrize(
    ("claims", "devices", "sentence"),
    [
        ((), [], "no new claims to deallocate"),
        ((device(on="node-1"),), [GPU], "deallocation of ResourceClaim completed"),
        (
            (device(on="node-1", reserved_for=frozenset({"pod"})),),
            [GPU],
            "deallocation of ResourceClaim completed",
        ),
        (
            (device(on="node-1", reserved_for=frozenset({"pod", "other"})),),
            [GPU],
            "still not schedulable",
        ),
        ((device(on="node-2"),), [GPU], "still not schedulable"),
        ((device(),), [GPU], "still not schedulable"),
        ((device(deleting=True),), [GPU], "no new claims to deallocate"),
    ],
)
def test_the_message_reports_claims_by_the_release(
    claims: tuple[ResourceClaim, ...], devices: list[DeviceClaim], sentence: str
) -> None:
    full = snapshot(node("node-2"), *claims)
    preemptor = pod(devices=devices)
    decision = decide_preemption(
        preemptor, full, SchedulerRules(RELEASES["1.36"], FILTER), ["node-2"]
    )
    assert f" {sentence}, preemption: 0/1 nodes" in decision.message
    newer = decide_preemption(preemptor, full, SchedulerRules(RELEASES["1.37"], FILTER), ["node-2"])
    assert sentence not in newer.message
