"""A node's pods and its stats, read from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from extender.explain.cluster_files import priority_classes, priority_of_class
from extender.explain.cluster_objects import ClusterObjects
from extender.explain.decisions import UnknownNodeError
from extender.kube.decoders.cluster_objects import PriorityClass
from extender.kube.decoders.kubelet.pods import decode_undefaulted_evictable_pod, static_pod_uid
from extender.kube.decoders.kubelet.summary_stats import decode_summary
from extender.kube.decoders.manifests import Manifest, ManifestError, read_documents
from extender.kube.decoders.typed_decoder import ObjectError, Unreadable, identify_unreadable
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.pods import EvictablePod
from policies.eviction.stats import Summary


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The data of one node: its active pods, and its stats in the order of the files."""

    pods: tuple[EvictablePod, ...]
    samples: tuple[Summary, ...]


def load_node(
    objects: ClusterObjects, summaries: Iterable[str], node: str, release: EvictionRelease
) -> NodeFiles:
    """Read the pods that are bound to ``node`` and have not ended, and its summaries.

    Raise ManifestError, also for a pod of this node that cannot be decoded, and UnknownNodeError.
    """
    samples = tuple(sample for path in summaries for sample in _samples(path, node))
    manifests = objects.manifests
    classes = priority_classes(manifests)
    pods = [each for each in manifests if each.kind == "Pod" and _identity(each).node_name == node]
    nodes = {_identity(each).name for each in manifests if each.kind == "Node"}
    if not pods and node not in nodes:
        raise UnknownNodeError(f"--node: no node {node!r} in {objects.source}")
    measured = {uid for sample in samples for uid in sample.pods}
    return NodeFiles(
        tuple(_with_stats_uid(_pod(each, classes, release), each, measured) for each in pods),
        samples,
    )


def _samples(path: str, node: str) -> Iterable[Summary]:
    documents = read_documents(path)
    if not documents:
        raise ManifestError(f"{path}: holds no summary; expected at least one")
    for document in documents:
        name, summary = decode_summary(document)
        if name and name != node:
            raise ManifestError(
                f"{document.source}: node.nodeName: expected {node!r} as in --node, got {name!r}"
            )
        yield summary


def _identity(manifest: Manifest) -> Unreadable:
    return identify_unreadable(manifest.kind, manifest.raw, "")


def _pod(
    manifest: Manifest, classes: Mapping[str, PriorityClass], release: EvictionRelease
) -> EvictablePod:
    try:
        pod = decode_undefaulted_evictable_pod(manifest.raw, release)
    except ObjectError as error:
        raise ManifestError(f"{manifest.source}: {error}") from None
    priority = priority_of_class(manifest.raw, classes)
    return pod if priority is None else replace(pod, priority=priority)


def _with_stats_uid(pod: EvictablePod, manifest: Manifest, measured: set[str]) -> EvictablePod:
    """Return the pod with the UID under which it has stats.

    A mirror pod represents a static pod, whose UID is in its annotation; a pod from a hand-written
    file may have no UID.
    """
    uid = static_pod_uid(manifest.raw)
    if uid in measured and pod.uid not in measured:
        return replace(pod, uid=uid)
    return pod if pod.uid else replace(pod, uid=pod.key)
