"""A ReplicaSet and its pods from files, with related ReplicaSets and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.kube.decoding import Unreadable
from extender.kube.manifests import Manifest, decode_manifests, read_manifests
from extender.kube.replicas import decode_member, decode_replica_set
from extender.sinks import ObjectStore
from policies.scaledown import (
    RankedPod,
    ReplicaSet,
    ReplicaSetPod,
    claimed_pods,
    indirectly_related_pods,
    related_pods_per_node,
)
from policies.workloads import REPLICA_SET


class ReplicaFileError(ValueError):
    """A ReplicaSet is not found, cannot be decoded, or has too few pods; the text has which."""


@dataclass(frozen=True, slots=True)
class ReplicaSetPods:
    """The pods that a ReplicaSet may delete, as the files list them.

    ``crowding`` counts the active related pods by node.
    """

    active: Sequence[RankedPod]
    crowding: Mapping[str, int]


def load_replica_set_pods(paths: Sequence[str], key: str, count: int) -> ReplicaSetPods:
    """Return the pods that the ReplicaSet ``key`` can delete, at least ``count``.

    Raise ManifestError and ReplicaFileError. Any other object that cannot be decoded is skipped
    with a warning.
    """
    place = f"--cluster {', '.join(paths)}"
    manifests = [manifest for path in paths for manifest in read_manifests(path)]
    sets = _replica_sets(manifests, key)
    one = sets.by_key.get(key)
    if one is None:
        raise ReplicaFileError(f"--replicaset: no ReplicaSet {key!r} in {place}")
    pods: ObjectStore[ReplicaSetPod] = ObjectStore(lambda pod: pod.key, _ignore_change)
    pods.replace(decode_manifests(manifests, "Pod", decode_member))
    active = claimed_pods(one, pods.view())
    if count > len(active):
        raise ReplicaFileError(
            f"--delete: {count}; expected at most {len(active)}, "
            f"as many active pods as ReplicaSet {key} has in {place}"
        )
    return ReplicaSetPods(
        active, related_pods_per_node(indirectly_related_pods(one, sets.view(), pods.view()))
    )


def _replica_sets(manifests: Sequence[Manifest], wanted: str) -> ObjectStore[ReplicaSet]:
    written = [manifest for manifest in manifests if manifest.kind == REPLICA_SET]
    found = decode_manifests(written, REPLICA_SET, decode_replica_set)
    for manifest, each in zip(written, found, strict=True):
        if isinstance(each, Unreadable) and each.key in (wanted, wanted.removeprefix("default/")):
            raise ReplicaFileError(f"{manifest.source}: {each.problem}")
    sets: ObjectStore[ReplicaSet] = ObjectStore(lambda each: each.key, _ignore_change)
    sets.replace(found)
    return sets


def _ignore_change(_: object) -> None:
    """Ignore a change: a store that is filled from files has no observers."""
