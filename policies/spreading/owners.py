"""Which WorkloadSpread a new pod belongs to: the one whose target stands in its chain of owners.

From the pod's controller the chain goes up through kinds that are known, from controller to
controller, until one is the target. The first WorkloadSpread whose target and filter fit wins. If
an owner is not there, the pod is refused, and its controller tries again.

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
    """An owner in the chain is not there; the text names it."""


class SelectionError(ValueError):
    """A filter's selector cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Owners:
    """What is known of owners: the objects that were found, and the kinds that may be followed.

    An owner that is not among ``found`` is not there. Those in ``unread`` could not be read for
    another reason: what depends on them is not decided by them.
    """

    found: Mapping[Identity, Workload] = field(default_factory=dict)
    unread: frozenset[Identity] = frozenset()
    whitelist: Whitelist = NO_WHITELIST


def supported(owner: Reference, whitelist: Whitelist) -> bool:
    """Return whether an owner may be, or lead to, the target of a WorkloadSpread.

    Raises ApiVersionError.
    """
    return whitelist.supports(owner.group, owner.kind)


def refers_to(target: Reference, owner: Reference | None, owners: Owners) -> bool:
    """Return whether ``owner`` or a controller above it is ``target``.

    Raises ApiVersionError, OwnerNotFoundError.
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
    """Return whether a filter selects a new pod. Raises SelectionError."""
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
    """Find the WorkloadSpread, of those in its namespace, that a new pod belongs to.

    Raises OwnerNotFoundError.
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
