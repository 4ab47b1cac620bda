"""Lookup of a new pod's WorkloadSpread: the one whose target is in the pod's chain of owners.

The chain starts at the pod's controller and follows controller references through known kinds until
one is the target. The first WorkloadSpread whose target and filter match is used. If an owner does
not exist, the pod is rejected, and its controller retries.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (HandlePodCreation,
isReferenceEqual) and utils.go (IsPodSelected).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies.kubernetes.selectors import Labels
from policies.workloadspread.model import SpreadPod, TargetFilter, WorkloadSpread
from policies.workloadspread.object_references import ApiVersionError, ObjectKey, WorkloadReference
from policies.workloadspread.quirks import FILTER_WITHOUT_SELECTOR, Quirks
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload


class OwnerNotFoundError(LookupError):
    """An owner in the chain does not exist; the text names it."""


class SelectionError(ValueError):
    """A filter's selector is invalid; the text is the reason."""


@dataclass(frozen=True, slots=True)
class OwnerLookup:
    """The owners that were looked up, and the kinds that are followed.

    An owner that is not in ``found`` does not exist. Those in ``unread`` could not be read for
    another reason; they never match a target.
    """

    found: Mapping[ObjectKey, TargetWorkload] = field(default_factory=dict)
    unread: frozenset[ObjectKey] = frozenset()
    allowed_kinds: AllowedKinds = NO_ALLOWED_KINDS


def is_supported_owner(owner: WorkloadReference, allowed_kinds: AllowedKinds) -> bool:
    """Return whether an owner can be, or lead to, the target of a WorkloadSpread.

    Raise ApiVersionError.
    """
    return allowed_kinds.supports(owner.group, owner.kind)


def refers_to(
    target: WorkloadReference, owner: WorkloadReference | None, owners: OwnerLookup
) -> bool:
    """Return whether ``owner`` or a controller above it is ``target``.

    Raise ApiVersionError or OwnerNotFoundError.
    """
    seen: set[ObjectKey] = set()
    while owner is not None:
        target_identity, identity = target.identity, owner.identity
        if target_identity == identity:
            return True
        if identity in seen or not is_supported_owner(owner, owners.allowed_kinds):
            return False
        if identity in owners.unread:
            return False
        if identity not in owners.found:
            raise OwnerNotFoundError(f'{identity.kind} "{identity.name}" not found')
        seen.add(identity)
        owner = owners.found[identity].controller
    return False


def filter_selects(target_filter: TargetFilter | None, labels: Labels, quirks: Quirks) -> bool:
    """Return whether a filter selects a new pod. Raise SelectionError."""
    if target_filter is None:
        return True
    if target_filter.error:
        raise SelectionError(target_filter.error)
    if target_filter.selector is None:
        return FILTER_WITHOUT_SELECTOR not in quirks
    return target_filter.selector.matches(labels)


def workloadspread_of_new_pod(
    pod: SpreadPod, spreads: Iterable[WorkloadSpread], owners: OwnerLookup, quirks: Quirks
) -> WorkloadSpread | None:
    """Return the WorkloadSpread that a new pod belongs to, of those in its namespace.

    Raise OwnerNotFoundError.
    """
    controller = pod.controller
    if not pod.active or controller is None or not _is_followed(controller, owners.allowed_kinds):
        return None
    for spread in spreads:
        if spread.target is None or spread.terminating:
            continue
        try:
            if refers_to(spread.target, controller, owners) and filter_selects(
                spread.target_filter, pod.labels, quirks
            ):
                return spread
        except (ApiVersionError, SelectionError):
            continue
    return None


def _is_followed(controller: WorkloadReference, allowed_kinds: AllowedKinds) -> bool:
    try:
        return is_supported_owner(controller, allowed_kinds)
    except ApiVersionError:
        return False
