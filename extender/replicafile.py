"""A ReplicaSet and its pods from files, with related ReplicaSets and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.kube.decoding import Unreadable
from extender.kube.manifests import Manifest, of_kind, read_manifests
from extender.kube.replicas import decode_member, decode_replica_set
from extender.sinks import Table
from policies.scaledown import Member, Replica, ReplicaSet, claimed, crowding, related
from policies.workloads import REPLICA_SET


class ReplicaFileError(ValueError):
    """A ReplicaSet is not found, cannot be decoded, or has too few pods; the text has which."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The pods that a ReplicaSet may delete, as the files list them.

    ``crowding`` counts the active related pods by node.
    """

    active: Sequence[Replica]
    crowding: Mapping[str, int]


def load_replicas(paths: Sequence[str], key: str, count: int) -> Replicas:
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
    pods: Table[Member] = Table(lambda pod: pod.key, _untold)
    pods.replace(of_kind(manifests, "Pod", decode_member))
    active = claimed(one, pods.view())
    if count > len(active):
        raise ReplicaFileError(
            f"--delete: {count}; expected at most {len(active)}, "
            f"as many active pods as ReplicaSet {key} has in {place}"
        )
    return Replicas(active, crowding(related(one, sets.view(), pods.view())))


def _replica_sets(manifests: Sequence[Manifest], wanted: str) -> Table[ReplicaSet]:
    written = [manifest for manifest in manifests if manifest.kind == REPLICA_SET]
    found = of_kind(written, REPLICA_SET, decode_replica_set)
    for manifest, each in zip(written, found, strict=True):
        if isinstance(each, Unreadable) and each.key in (wanted, wanted.removeprefix("default/")):
            raise ReplicaFileError(f"{manifest.source}: {each.problem}")
    sets: Table[ReplicaSet] = Table(lambda each: each.key, _untold)
    sets.replace(found)
    return sets


def _untold(_: object) -> None:
    """Ignore a change: a store that is filled from files has no observers."""
