"""Rules that changed between releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from policies import SchedulerRules
from policies.kubernetes.csi_migration import AWS_EBS, PORTWORX, ZONE, translate_volume
from policies.kubernetes.feature_gates import STAGES, FeatureGate
from policies.kubernetes.releases import RELEASES, Release
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, node_requirement
from policies.kubernetes.snapshot import Node, Pod
from policies.kubernetes.storage import (
    CsiDriver,
    CsiNode,
    DeviceClaim,
    Disk,
    PersistentVolume,
    ResourceClaim,
    VolumeAttachment,
)
from policies.preemption.reference_engine import filter_nodes
from policies.testing.storage import StorageObject
from tests.builders import claim, node, pod, snapshot, volume


@dataclass(frozen=True)
class Change:
    """A rule or gate that changed in ``minor``, and what ``seen`` returns before and since."""

    rule: str
    minor: int
    seen: Callable[[Release], object]
    before: object
    since: object

    @property
    def releases(self) -> tuple[Release, Release]:
        return RELEASES[f"1.{self.minor - 1}"], RELEASES[f"1.{self.minor}"]

    @property
    def alone(self) -> Release:
        """The release before, with this one change."""
        before, since = self.releases
        if self.rule in STAGES:
            gate = FeatureGate(self.rule)
            return replace(before, gates=before.gates ^ {gate})
        return replace(before, **{self.rule: getattr(since, self.rule)})

    def __str__(self) -> str:
        return f"{self.rule}-1.{self.minor}"


# Storage

TOO_MANY = "node(s) exceed max volume count"
DRIVER, PORTWORX_DRIVER = "csi.example.com", "pxd.portworx.com"
CLAIMING = pod(volumes=["data"])
DATA = (claim("data", "pv"), volume("pv", "handle", DRIVER))
PORTWORX_DATA = (
    claim("data", "pv"),
    PersistentVolume("pv", migration=translate_volume(Disk(PORTWORX, "handle"), {}, None)),
)
GPU = DeviceClaim("gpu", "gpu")


def no_more_than(count: int, driver: str = DRIVER, **fields: Any) -> CsiNode:
    """Limit a driver on the only node."""
    return CsiNode("node-1", frozenset([driver]), {driver: count}, **fields)


def said_of(asking: Pod, *things: Node | Pod | StorageObject) -> Callable[[Release], str | None]:
    """Return a function of the release: why a pod does not fit the only node; None if it does."""

    def say(release: Release) -> str | None:
        filtered = filter_nodes(asking, snapshot(*things), SchedulerRules(release))
        return str(filtered.rejected["node-1"]) if filtered.rejected else None

    return say


def waits_for_devices(release: Release) -> bool:
    ready_later = ResourceClaim("default", "gpu", allocated=True, conditional=True)
    filtered = filter_nodes(
        pod(devices=[GPU]), snapshot(node(), ready_later), SchedulerRules(release)
    )
    return filtered.not_evaluated == {"DynamicResources"}


def in_zone(zone: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((node_requirement(ZONE, "In", [zone]),)),))


STORAGE_CHANGES = [
    Change(
        "claim_in_use_is_of_the_node",
        34,
        said_of(
            CLAIMING,
            node(),
            pod("user", on="node-1", volumes=["data"]),
            DATA[1],
            claim("data", "pv", access_modes=frozenset({"ReadWriteOncePod"})),
        ),
        before=(
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
            "access mode"
        ),
        since=(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod"
        ),
    ),
    Change(
        "volume_affinity_is_a_conflict",
        33,
        said_of(
            CLAIMING, node(), claim("data", "pv"), PersistentVolume("pv", affinity=in_zone("a"))
        ),
        before="node(s) had volume node affinity conflict",
        since="node(s) didn't match PersistentVolume's node affinity",
    ),
    Change(
        "node_lists_volume_limits",
        32,
        said_of(
            CLAIMING,
            node(others={f"attachable-volumes-csi-{DRIVER}": "1"}),
            *DATA,
            pod("user", on="node-1", volumes=["other"]),
            claim("other", "left"),
            volume("left", "left", DRIVER),
        ),
        before=TOO_MANY,
        since=None,
    ),
    Change(
        "limits_disks",
        31,
        said_of(
            pod(volumes=[Disk(AWS_EBS, "vol-1"), Disk(AWS_EBS, "vol-2")]),
            node(others={"attachable-volumes-aws-ebs": "1"}),
            CsiNode("other", frozenset()),
        ),
        before=TOO_MANY,
        since=None,
    ),
    Change(
        "attachments_count",
        32,
        said_of(
            CLAIMING,
            node(),
            *DATA,
            volume("left", "left", DRIVER),
            no_more_than(1),
            VolumeAttachment("attached", "node-1", DRIVER, "left"),
        ),
        before=None,
        since=TOO_MANY,
    ),
    Change(
        "VolumeLimitScaling",
        37,
        said_of(CLAIMING, node(), *DATA, CsiDriver(DRIVER, required=True)),
        before=None,
        since=f"{DRIVER} CSI driver is not installed on the node",
    ),
    Change(
        "portworx",
        31,
        said_of(
            CLAIMING,
            node(),
            *PORTWORX_DATA,
            no_more_than(0, PORTWORX_DRIVER, migrated=frozenset([PORTWORX])),
        ),
        before=None,
        since=TOO_MANY,
    ),
    Change(
        "portworx",
        36,
        said_of(CLAIMING, node(), *PORTWORX_DATA, no_more_than(0, PORTWORX_DRIVER)),
        before=None,
        since=TOO_MANY,
    ),
    Change(
        "DynamicResourceAllocation",
        34,
        said_of(pod(devices=[GPU]), node()),
        before=None,
        since='could not find ResourceClaim "default/gpu"',
    ),
    Change("DRADeviceBindingConditions", 36, waits_for_devices, before=False, since=True),
    Change(
        "claim_owner_is_capitalised",
        36,
        said_of(
            pod(devices=[DeviceClaim("gpu", "gpu", templated=True)]),
            node(),
            ResourceClaim("default", "gpu", owner="other"),
        ),
        before="ResourceClaim default/gpu was not created for pod default/pod (pod is not owner)",
        since="ResourceClaim default/gpu was not created for Pod default/pod (Pod is not owner)",
    ),
]
