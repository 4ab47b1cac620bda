"""Validation of a WorkloadSpread, with upstream's error texts.

These are the rules of the webhook beyond the schema of the CustomResourceDefinition, in upstream's
order; the first invalid maxReplicas ends the validation of subsets.

Source: openkruise/kruise pkg/webhook/workloadspread/validating/workloadspread_validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from policies.spreading.limits import LimitError, share
from policies.spreading.model import MaxReplicas, Spread, Strategy, Subset
from policies.spreading.placement_rules import (
    INVALID,
    REQUIRED,
    Fault,
    preference_faults,
    required_term_faults,
    toleration_faults,
)
from policies.spreading.quirks import ADVANCED_PATCH_UNCHECKED, Quirks
from policies.spreading.references import (
    APPS,
    STATEFUL_SET,
    TARGET_KINDS,
    ApiVersionError,
    Identity,
    Reference,
)
from policies.spreading.workloads import NO_WHITELIST, Whitelist

_TARGET: Final = "spec.targetRef"
_STRATEGY: Final = "spec.scheduleStrategy"
_TYPES: Final = ("", "Fixed", "Adaptive")
_WHOLE: Final = 100
_LONGEST_SECONDS: Final = 300 - 5
_INT32: Final = 2**31 - 1

PatchFaults = Callable[[int, str], Iterable[Fault]]
"""Validates the patch of the subset at an index, applied to the target's pod template.

It takes the patch's path, too.
"""


def validate(
    spread: Spread,
    others: Iterable[Spread] = (),
    whitelist: Whitelist = NO_WHITELIST,
    patch_faults: PatchFaults | None = None,
    old: Spread | None = None,
) -> tuple[Fault, ...]:
    """Return all errors of a WorkloadSpread.

    ``others`` are those of its namespace; they can include the WorkloadSpread itself. Without
    ``patch_errors``, that is if the target does not exist, patches are not validated. ``old`` is
    the object that it replaces, None for a new one.
    """
    faults = [
        *_target_faults(spread.target, whitelist),
        *_subset_faults(spread, patch_faults),
        *_strategy_faults(spread.strategy, len(spread.subsets), _last_limit(spread)),
    ]
    wanted = spread.target_filter
    if wanted is not None and wanted.problem:
        faults.append(Fault("spec.targetFilter", INVALID, wanted.problem))
    return (*faults, *conflict_faults(spread, others), *update_faults(spread, old))


def conflict_faults(spread: Spread, others: Iterable[Spread]) -> Iterator[Fault]:
    """Check that no other WorkloadSpread has the same target; report the first conflict."""
    for other in others:
        if other.name == spread.name or spread.target is None or other.target is None:
            continue
        if spread.target.presumed == other.target.presumed:
            told = f"ws.spec.targetRef is in conflict with other WorkloadSpread {other.name}"
            yield Fault(_TARGET, INVALID, told)
            return


def update_faults(spread: Spread, old: Spread | None) -> Iterator[Fault]:
    """Check that the target is unchanged; only its version can change."""
    if old is None or old.target is None or spread.target is None:
        return
    if spread.target.presumed != old.target.presumed:
        told = "change TargetReference is not permitted for WorkloadSpread"
        yield Fault(_TARGET, INVALID, told)


def template_holder(spread: Spread, quirks: Quirks) -> Identity | None:
    """Return the object whose pod template the patches are validated against, if it is known."""
    target = spread.target
    if target is None or not _is_known(target):
        return None
    if target.kind == STATEFUL_SET and ADVANCED_PATCH_UNCHECKED in quirks:
        return Identity(APPS, STATEFUL_SET, target.name)
    return target.identity


def _target_faults(target: Reference | None, whitelist: Whitelist) -> Iterator[Fault]:
    if target is None:
        yield Fault(_TARGET, REQUIRED, "no targetRef defined in WorkloadSpread")
    elif not (target.api_version and target.kind and target.name):
        told = "empty TargetReference is not valid for WorkloadSpread."
        yield Fault(_TARGET, INVALID, told)
    elif target.kind in TARGET_KINDS:
        if not _is_known(target):
            yield Fault(_TARGET, INVALID, f"TargetReference is not valid for {target.kind}.")
    elif not _is_allowed(target, whitelist):
        yield Fault(_TARGET, INVALID, "TargetReference's GroupKind is not permitted.")


def _is_known(target: Reference) -> bool:
    try:
        return target.group in TARGET_KINDS.get(target.kind, ()) and target.name != ""
    except ApiVersionError:
        return False


def _is_allowed(target: Reference, whitelist: Whitelist) -> bool:
    try:
        return whitelist.targets(target.group, target.kind)
    except ApiVersionError:
        return False


def _subset_faults(spread: Spread, patch_faults: PatchFaults | None) -> Iterator[Fault]:
    subsets = spread.subsets
    if not subsets:
        told = "subsets number must >= 1 in WorkloadSpread"
        yield Fault("spec.subsets", REQUIRED, told)
        return
    names: set[str] = set()
    limits = _Limits(for_stateful_set=_is_stateful(spread))
    for index, subset in enumerate(subsets):
        path = f"spec.subsets[{index}]"
        yield from _name_faults(subset.name, names, f"{path}.name")
        yield from _placement_faults(subset, path)
        if subset.patched and patch_faults is not None:
            yield from patch_faults(index, f"{path}.patch")
        problem = limits.add(subset.max_replicas)
        if problem:
            yield Fault(f"{path}.maxReplicas", INVALID, problem)
            return
    if limits.falls_short and subsets[-1].max_replicas is not None:
        told = "maxReplicas sum of all subsets must equal 100% when type is specified as percent"
        yield Fault("spec.subsets[0].maxReplicas", INVALID, told)


def _is_stateful(spread: Spread) -> bool:
    return spread.target is not None and spread.target.kind == STATEFUL_SET


def _name_faults(name: str, names: set[str], path: str) -> Iterator[Fault]:
    if not name:
        yield Fault(path, INVALID)
    elif name in names:
        yield Fault(path, INVALID, f"duplicated subset name {name}")
    names.add(name)


def _placement_faults(subset: Subset, path: str) -> Iterator[Fault]:
    if subset.required is not None:
        yield from required_term_faults(subset.required, f"{path}.requiredNodeSelector")
    yield from preference_faults(subset.preferred, f"{path}.preferredNodeSelector")
    yield from toleration_faults(subset.tolerations, f"{path}.tolerations")


class _Limits:
    """The limits of subsets in order: all numbers, or percentages of at most 100% together."""

    def __init__(self, *, for_stateful_set: bool) -> None:
        self._for_stateful_set = for_stateful_set
        self._type: type | None = None
        self._sum = 0

    @property
    def falls_short(self) -> bool:
        """Whether they are percentages of less than 100% together."""
        return self._type is str and self._sum < _WHOLE

    def add(self, limit: MaxReplicas) -> str:
        """Add a limit, and return its error; "" if it is valid."""
        if limit is None:
            return ""
        self._type = self._type or type(limit)
        if not isinstance(limit, self._type):
            return "the maxReplicas type of all subsets must be the same"
        if self._for_stateful_set and isinstance(limit, str):
            return "the maxReplicas type must be Int for StatefulSet"
        try:
            number = share(limit, _WHOLE)
        except LimitError:
            number = -1
        if number < 0:
            return "maxReplicas is not valid for subset"
        self._sum += number if isinstance(limit, str) else 0
        if self._sum > _WHOLE:
            return "the sum of all subset's maxReplicas exceeds 100% is no permitted"
        return ""


def _last_limit(spread: Spread) -> MaxReplicas:
    return spread.subsets[-1].max_replicas if len(spread.subsets) > 1 else None


def _strategy_faults(strategy: Strategy, subsets: int, last_limit: MaxReplicas) -> Iterator[Fault]:
    if strategy.type not in _TYPES:
        yield Fault(f"{_STRATEGY}.type", INVALID, "ScheduleStrategy's type is not valid")
    if strategy.adaptive is None:
        return
    if not strategy.is_adaptive:
        told = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy"
        yield Fault(f"{_STRATEGY}.type", INVALID, told)
    if last_limit is not None:
        told = (
            "the last subset's maxReplicas must be not specified when using adaptive "
            "scheduleStrategy"
        )
        yield Fault(f"{_STRATEGY}.adaptive", INVALID, told)
    longest = _LONGEST_SECONDS // (subsets - 1) if subsets > 1 else _INT32
    seconds = strategy.adaptive.critical_seconds
    if seconds is not None and not 0 <= seconds <= longest:
        told = (
            f"rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {longest} is not "
            "permitted"
        )
        yield Fault(f"{_STRATEGY}.adaptive.rescheduleCriticalSeconds", INVALID, told)
