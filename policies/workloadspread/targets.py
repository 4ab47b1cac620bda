"""The target of a WorkloadSpread: its pods and its replicas.

    kind                         replicas                        pods
    CloneSet, StatefulSet        spec.replicas                   those it owns
    ReplicaSet                   spec.replicas                   those it owns
    Deployment                   spec.replicas                   those its live ReplicaSets own
    Job                          spec.parallelism                those it owns and selects
    any other                    its scale, or unknown (-1)      those it owns; if none, those its
                                                                 scale selects

A path, of the WorkloadSpread's filter or else of the whitelist, overrides the replicas. A workload
that does not exist has no pods; nor has one that is terminating or has 0 replicas, unless it is a
Job.

A path is dotted, as ``spec.replicas`` or ``spec.groups.0.replicas``: a step into an object is a
key, a step into an array is an index.

Sources: openkruise/kruise pkg/util/controllerfinder, and getPodsForWorkloadSpread and
filterWorkload in pkg/controller/workloadspread/workloadspread_controller.go; for the webhook,
getWorkloadReplicas in pkg/util/workloadspread/workloadspread.go; for paths, utils.go (NestedField).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.integers import parse_integer
from policies.workloadspread.model import SpreadPod, WorkloadSpread
from policies.workloadspread.object_references import (
    DEPLOYMENT,
    JOB,
    NATIVE_KINDS,
    REPLICA_SET,
    TARGET_KINDS,
    parse_group_version,
)
from policies.workloadspread.quirks import SCALE_WITHOUT_SELECTOR, Quirks
from policies.workloadspread.workload_versions import is_controlled_by
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload

UNKNOWN_REPLICAS: Final = -1


class PathError(ValueError):
    """A path does not exist, or its value is not an integer."""


def replicas_at(document: object, paths: Iterable[str]) -> int:
    """Add up the integers at ``paths``; an empty path counts as 0. Raise PathError."""
    return sum(nested_integer(document, path.split(".")) if path else 0 for path in paths)


def nested_integer(document: object, steps: Sequence[str]) -> int:
    """Return the integer at the path ``steps``. Raise PathError."""
    found = document
    for step in steps:
        found = _child(found, step)
    if not isinstance(found, int) or isinstance(found, bool):
        raise PathError("object type error")
    return found


def _child(found: object, step: str) -> object:
    if isinstance(found, Mapping):
        if step not in found:
            raise PathError(f'path "{step}" not exists')
        return found[step]
    if isinstance(found, list):
        index = parse_integer(step)
        if index is None:
            raise PathError(f'strconv.Atoi: parsing "{step}": invalid syntax')
        if not 0 <= index < len(found):
            raise PathError(f"index {index} out of range")
        return found[index]
    raise PathError("object is not deep enough")


class TargetError(ValueError):
    """The target's pods or replicas cannot be determined; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Target:
    """The objects of a target reference that a reconciliation reads.

    ``workload`` is None if it does not exist. ``replica_sets`` and ``pods`` are those of its
    namespace; objects of other workloads are ignored.
    """

    workload: TargetWorkload | None = None
    replica_sets: tuple[TargetWorkload, ...] = ()
    pods: tuple[SpreadPod, ...] = ()
    allowed_kinds: AllowedKinds = NO_ALLOWED_KINDS


@dataclass(frozen=True, slots=True)
class TargetPods:
    """The pods to spread, by name, and the replicas that percentages refer to."""

    pods: tuple[SpreadPod, ...] = ()
    replicas: int = 0


def find_target_pods(spread: WorkloadSpread, target: Target, quirks: Quirks) -> TargetPods:
    """Return the pods and replicas for a reconciliation. Raise TargetError."""
    found = _find_owned_pods(spread, target, quirks)
    if spread.target is None or target.workload is None:
        return found
    replicas = found.replicas
    paths = _replicas_paths(spread, target.allowed_kinds, quirks)
    if paths:
        try:
            replicas = replicas_at(target.workload.document, paths)
        except PathError as error:
            raise TargetError(f"{target.workload.key}: {error}") from None
    return TargetPods(_filtered(spread, found.pods), replicas)


def replicas_for_webhook(
    spread: WorkloadSpread, workload: TargetWorkload | None, allowed_kinds: AllowedKinds
) -> int:
    """Return the replicas that a version's initial percentages refer to. Raise TargetError.

    They are determined only if the maxReplicas of a subset is a percentage; 0 otherwise.
    """
    reference = spread.target
    has_percentage = any(str(subset.max_replicas).endswith("%") for subset in spread.subsets)
    if reference is None or workload is None or not has_percentage:
        return 0
    if spread.target_filter is not None and spread.target_filter.replicas_paths:
        try:
            return replicas_at(workload.document, spread.target_filter.replicas_paths)
        except PathError as error:
            raise TargetError(f"{workload.key}: {error}") from None
    return known_replicas(workload, allowed_kinds)


def known_replicas(workload: TargetWorkload, allowed_kinds: AllowedKinds) -> int:
    """Return the replicas of a workload by its kind, or by the path in the whitelist; else 0."""
    group, kind, _ = workload.identity
    if group in TARGET_KINDS.get(kind, ()):
        return workload.parallelism if kind == JOB else workload.replicas
    path = allowed_kinds.replicas_path(group, kind)
    try:
        return 0 if path is None else replicas_at(workload.document, (path,))
    except PathError:
        return 0


def _find_owned_pods(spread: WorkloadSpread, target: Target, quirks: Quirks) -> TargetPods:
    workload = target.workload
    if spread.target is None or workload is None:
        return TargetPods()
    pods = sorted(target.pods, key=lambda pod: pod.name)
    group, kind, _ = workload.identity
    native = group in NATIVE_KINDS.get(kind, ())
    if kind == JOB and native:
        return _of_job(workload, pods)
    if kind in (JOB, REPLICA_SET) and not native:
        return TargetPods()
    if native and workload.terminating:
        return TargetPods()
    replicas = workload.replicas if native else _scale(workload)
    if replicas == 0:
        return TargetPods()
    owners = {workload.uid}
    if kind == DEPLOYMENT and native:
        sets = [each.uid for each in target.replica_sets if is_controlled_by(each, workload)]
        owners = set(sets) or owners
    owned = [pod for pod in pods if not owners.isdisjoint(pod.owners)]
    if not owned and kind not in NATIVE_KINDS:
        owned = _selected_by_scale(workload, pods, quirks)
    return TargetPods(tuple(owned), replicas)


def _of_job(workload: TargetWorkload, pods: Iterable[SpreadPod]) -> TargetPods:
    selector = workload.selector
    owned = [
        pod
        for pod in pods
        if workload.uid in pod.owners and selector is not None and selector.matches(pod.labels)
    ]
    return TargetPods(tuple(owned), workload.parallelism)


def _scale(workload: TargetWorkload) -> int:
    return UNKNOWN_REPLICAS if workload.scale is None else workload.scale.replicas


def _selected_by_scale(
    workload: TargetWorkload, pods: Iterable[SpreadPod], quirks: Quirks
) -> list[SpreadPod]:
    if workload.scale is None:
        return []
    selector = workload.scale.selector
    if selector is None:
        return list(pods) if SCALE_WITHOUT_SELECTOR in quirks else []
    return [pod for pod in pods if selector.matches(pod.labels)]


def _replicas_paths(
    spread: WorkloadSpread, allowed_kinds: AllowedKinds, quirks: Quirks
) -> Sequence[str]:
    if spread.target_filter is not None and spread.target_filter.replicas_paths:
        return spread.target_filter.replicas_paths
    if spread.target is None:
        return ()
    group, version = parse_group_version(spread.target.api_version)
    path = allowed_kinds.path_for_controller(group, version, spread.target.kind, quirks)
    return () if path is None else (path,)


def _filtered(spread: WorkloadSpread, pods: tuple[SpreadPod, ...]) -> tuple[SpreadPod, ...]:
    target_filter = spread.target_filter
    selector = None if target_filter is None else target_filter.selector
    if selector is not None:
        return tuple(pod for pod in pods if selector.matches(pod.labels))
    if target_filter is not None and target_filter.error:
        raise TargetError(f"spec.targetFilter.selector: {target_filter.error}")
    return pods
