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

from policies.selectors import Labels
from policies.spreading.model import Spread, SpreadPod, TargetFilter
from policies.spreading.quirks import FILTER_WITHOUT_SELECTOR, Quirks
from policies.spreading.references import ApiVersionError, Identity, Reference
from policies.spreading.workloads import NO_WHITELIST, Whitelist, Workload


class OwnerNotFoundError(LookupError):
    """An owner in the chain does not exist; the text names it."""


class SelectionError(ValueError):
    """A filter's selector is invalid; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners that were looked up, and the kinds that are followed.

    An owner that is not in ``found`` does not exist. Those in ``unread`` could not be read for
    another reason; they never match a target.
    """

    found: Mapping[Identity, Workload] = field(default_factory=dict)
    unread: frozenset[Identity] = frozenset()
    whitelist: Whitelist = NO_WHITELIST


def supported(owner: Reference, whitelist: Whitelist) -> bool:
    """Return whether an owner can be, or lead to, the target of a WorkloadSpread.

    Raise ApiVersionError.
    """
    return whitelist.supports(owner.group, owner.kind)


def refers_to(target: Reference, owner: Reference | None, owners: Owners) -> bool:
    """Return whether ``owner`` or a controller above it is ``target``.

    Raise ApiVersionError or OwnerNotFoundError.
    """
    seen: set[Identity] = set()
    while owner is not None:
        target_identity, identity = target.identity, owner.identity
        if target_identity == identity:
            return True
        if identity in seen or not supported(owner, owners.whitelist):
            return False
        if identity in owners.unread:
            return False
        if identity not in owners.found:
            raise OwnerNotFoundError(f'{identity.kind} "{identity.name}" not found')
        seen.add(identity)
        owner = owners.found[identity].controller
    return False


def selects(wanted: TargetFilter | None, labels: Labels, quirks: Quirks) -> bool:
    """Return whether a filter selects a new pod. Raise SelectionError."""
    if wanted is None:
        return True
    if wanted.problem:
        raise SelectionError(wanted.problem)
    if wanted.selector is None:
        return FILTER_WITHOUT_SELECTOR not in quirks
    return wanted.selector.matches(labels)


def spread_of(
    pod: SpreadPod, spreads: Iterable[Spread], owners: Owners, quirks: Quirks
) -> Spread | None:
    """Return the WorkloadSpread that a new pod belongs to, of those in its namespace.

    Raise OwnerNotFoundError.
    """
    controller = pod.controller
    if not pod.active or controller is None or not _followed(controller, owners.whitelist):
        return None
    for spread in spreads:
        if spread.target is None or spread.terminating:
            continue
        try:
            if refers_to(spread.target, controller, owners) and selects(
                spread.target_filter, pod.labels, quirks
            ):
                return spread
        except (ApiVersionError, SelectionError):
            continue
    return None


def _followed(controller: Reference, whitelist: Whitelist) -> bool:
    try:
        return supported(controller, whitelist)
    except ApiVersionError:
        return False
