"""Validation of a WorkloadSpread, with upstream's error texts.

These are the rules of the webhook beyond the schema of the CustomResourceDefinition, in upstream's
order; the first invalid maxReplicas ends the validation of subsets. Of a target filter's label
selector only the first invalid requirement is reported, with all of its errors.

Sources: openkruise/kruise pkg/webhook/workloadspread/validating/workloadspread_validation.go;
LabelSelectorAsSelector in k8s.io/apimachinery pkg/apis/meta/v1/helpers.go, and NewRequirement in
pkg/labels/selector.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from policies.kubernetes.name_validation import label_key_errors, label_value_errors
from policies.workloadspread.model import (
    Expression,
    MaxReplicas,
    ScheduleStrategy,
    Subset,
    WorkloadSpread,
)
from policies.workloadspread.object_references import (
    APPS,
    STATEFUL_SET,
    TARGET_KINDS,
    ApiVersionError,
    ObjectKey,
    WorkloadReference,
)
from policies.workloadspread.placement_validation import (
    INVALID,
    REQUIRED,
    FieldValidationError,
    preference_errors,
    required_term_errors,
    toleration_errors,
)
from policies.workloadspread.quirks import ADVANCED_PATCH_UNCHECKED, Quirks
from policies.workloadspread.subset_counts import MaxReplicasError, percentage_value
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds

_TARGET: Final = "spec.targetRef"
_STRATEGY: Final = "spec.scheduleStrategy"
_TYPES: Final = ("", "Fixed", "Adaptive")
_HUNDRED_PERCENT: Final = 100
_MAX_TOTAL_SECONDS: Final = 300 - 5
_INT32: Final = 2**31 - 1
_NO_VALUES: Final = "for 'in', 'notin' operators, values set can't be empty"
_VALUES: Final = "values set must be empty for exists and does not exist"

PatchValidation = Callable[[int, str], Iterable[FieldValidationError]]
"""Validates the patch of the subset at an index, applied to the target's pod template.

It takes the patch's path, too.
"""


def validate(
    spread: WorkloadSpread,
    others: Iterable[WorkloadSpread] = (),
    allowed_kinds: AllowedKinds = NO_ALLOWED_KINDS,
    patch_errors: PatchValidation | None = None,
    old: WorkloadSpread | None = None,
) -> tuple[FieldValidationError, ...]:
    """Return all errors of a WorkloadSpread.

    ``others`` are those of its namespace; they can include the WorkloadSpread itself. Without
    ``patch_errors``, that is if the target does not exist, patches are not validated. ``old`` is
    the object that it replaces, None for a new one.
    """
    errors = [
        *_target_errors(spread.target, allowed_kinds),
        *_subset_errors(spread, patch_errors),
        *_strategy_errors(spread.strategy, len(spread.subsets), _last_limit(spread)),
    ]
    target_filter = spread.target_filter
    if target_filter is not None and target_filter.error:
        errors.append(FieldValidationError("spec.targetFilter", INVALID, target_filter.error))
    return (*errors, *conflict_errors(spread, others), *update_errors(spread, old))


def conflict_errors(
    spread: WorkloadSpread, others: Iterable[WorkloadSpread]
) -> Iterator[FieldValidationError]:
    """Check that no other WorkloadSpread has the same target; report the first conflict."""
    for other in others:
        if other.name == spread.name or spread.target is None or other.target is None:
            continue
        if spread.target.lenient_identity == other.target.lenient_identity:
            detail = f"ws.spec.targetRef is in conflict with other WorkloadSpread {other.name}"
            yield FieldValidationError(_TARGET, INVALID, detail)
            return


def update_errors(
    spread: WorkloadSpread, old: WorkloadSpread | None
) -> Iterator[FieldValidationError]:
    """Check that the target is unchanged; only its version can change."""
    if old is None or old.target is None or spread.target is None:
        return
    if spread.target.lenient_identity != old.target.lenient_identity:
        detail = "change TargetReference is not permitted for WorkloadSpread"
        yield FieldValidationError(_TARGET, INVALID, detail)


def template_holder(spread: WorkloadSpread, quirks: Quirks) -> ObjectKey | None:
    """Return the object whose pod template the patches are validated against, if it is known."""
    target = spread.target
    if target is None or not _is_known(target):
        return None
    if target.kind == STATEFUL_SET and ADVANCED_PATCH_UNCHECKED in quirks:
        return ObjectKey(APPS, STATEFUL_SET, target.name)
    return target.identity


def _target_errors(
    target: WorkloadReference | None, allowed_kinds: AllowedKinds
) -> Iterator[FieldValidationError]:
    if target is None:
        yield FieldValidationError(_TARGET, REQUIRED, "no targetRef defined in WorkloadSpread")
    elif not (target.api_version and target.kind and target.name):
        detail = "empty TargetReference is not valid for WorkloadSpread."
        yield FieldValidationError(_TARGET, INVALID, detail)
    elif target.kind in TARGET_KINDS:
        if not _is_known(target):
            yield FieldValidationError(
                _TARGET, INVALID, f"TargetReference is not valid for {target.kind}."
            )
    elif not _is_allowed(target, allowed_kinds):
        yield FieldValidationError(
            _TARGET, INVALID, "TargetReference's GroupKind is not permitted."
        )


def _is_known(target: WorkloadReference) -> bool:
    try:
        return target.group in TARGET_KINDS.get(target.kind, ()) and target.name != ""
    except ApiVersionError:
        return False


def _is_allowed(target: WorkloadReference, allowed_kinds: AllowedKinds) -> bool:
    try:
        return allowed_kinds.targets(target.group, target.kind)
    except ApiVersionError:
        return False


def _subset_errors(
    spread: WorkloadSpread, patch_errors: PatchValidation | None
) -> Iterator[FieldValidationError]:
    subsets = spread.subsets
    if not subsets:
        detail = "subsets number must >= 1 in WorkloadSpread"
        yield FieldValidationError("spec.subsets", REQUIRED, detail)
        return
    names: set[str] = set()
    limits = _MaxReplicasSequence(for_stateful_set=_is_stateful(spread))
    for index, subset in enumerate(subsets):
        path = f"spec.subsets[{index}]"
        yield from _name_errors(subset.name, names, f"{path}.name")
        yield from _placement_errors(subset, path)
        if subset.patched and patch_errors is not None:
            yield from patch_errors(index, f"{path}.patch")
        problem = limits.add(subset.max_replicas)
        if problem:
            yield FieldValidationError(f"{path}.maxReplicas", INVALID, problem)
            return
    if limits.falls_short and subsets[-1].max_replicas is not None:
        detail = "maxReplicas sum of all subsets must equal 100% when type is specified as percent"
        yield FieldValidationError("spec.subsets[0].maxReplicas", INVALID, detail)


def _is_stateful(spread: WorkloadSpread) -> bool:
    return spread.target is not None and spread.target.kind == STATEFUL_SET


def _name_errors(name: str, names: set[str], path: str) -> Iterator[FieldValidationError]:
    if not name:
        yield FieldValidationError(path, INVALID)
    elif name in names:
        yield FieldValidationError(path, INVALID, f"duplicated subset name {name}")
    names.add(name)


def _placement_errors(subset: Subset, path: str) -> Iterator[FieldValidationError]:
    if subset.required is not None:
        yield from required_term_errors(subset.required, f"{path}.requiredNodeSelector")
    yield from preference_errors(subset.preferred, f"{path}.preferredNodeSelector")
    yield from toleration_errors(subset.tolerations, f"{path}.tolerations")


class _MaxReplicasSequence:
    """The limits of subsets in order: all numbers, or percentages of at most 100% together."""

    def __init__(self, *, for_stateful_set: bool) -> None:
        self._for_stateful_set = for_stateful_set
        self._type: type | None = None
        self._sum = 0

    @property
    def falls_short(self) -> bool:
        """Whether they are percentages of less than 100% together."""
        return self._type is str and self._sum < _HUNDRED_PERCENT

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
            number = percentage_value(limit, _HUNDRED_PERCENT)
        except MaxReplicasError:
            number = -1
        if number < 0:
            return "maxReplicas is not valid for subset"
        self._sum += number if isinstance(limit, str) else 0
        if self._sum > _HUNDRED_PERCENT:
            return "the sum of all subset's maxReplicas exceeds 100% is no permitted"
        return ""


def _last_limit(spread: WorkloadSpread) -> MaxReplicas:
    return spread.subsets[-1].max_replicas if len(spread.subsets) > 1 else None


def _strategy_errors(
    strategy: ScheduleStrategy, subsets: int, last_limit: MaxReplicas
) -> Iterator[FieldValidationError]:
    if strategy.type not in _TYPES:
        yield FieldValidationError(
            f"{_STRATEGY}.type", INVALID, "ScheduleStrategy's type is not valid"
        )
    if strategy.adaptive is None:
        return
    if not strategy.is_adaptive:
        detail = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy"
        yield FieldValidationError(f"{_STRATEGY}.type", INVALID, detail)
    if last_limit is not None:
        detail = (
            "the last subset's maxReplicas must be not specified when using adaptive "
            "scheduleStrategy"
        )
        yield FieldValidationError(f"{_STRATEGY}.adaptive", INVALID, detail)
    longest = _MAX_TOTAL_SECONDS // (subsets - 1) if subsets > 1 else _INT32
    seconds = strategy.adaptive.reschedule_critical_seconds
    if seconds is not None and not 0 <= seconds <= longest:
        detail = (
            f"rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {longest} is not "
            "permitted"
        )
        yield FieldValidationError(
            f"{_STRATEGY}.adaptive.rescheduleCriticalSeconds", INVALID, detail
        )


def label_selector_error(labels: Mapping[str, str], expressions: Iterable[Expression]) -> str:
    """Return why a label selector is invalid; "" if it is valid."""
    for key in sorted(labels):
        error = _aggregate([*_key_errors(key), *_value_errors(key, (labels[key],))])
        if error:
            return error
    for each in expressions:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f'"{each.operator}" is not a valid label selector operator'
        error = _aggregate(
            [
                *_key_errors(each.key),
                *_value_count_errors(each),
                *_value_errors(each.key, each.values),
            ]
        )
        if error:
            return error
    return ""


def _key_errors(key: str) -> Iterator[str]:
    wrong = label_key_errors(key)
    if wrong:
        yield f'key: Invalid value: "{key}": {"; ".join(wrong)}'


def _value_count_errors(each: Expression) -> Iterator[str]:
    if each.operator in ("In", "NotIn"):
        if not each.values:
            yield f"values: Invalid value: []string(nil): {_NO_VALUES}"
    elif each.values:
        written = ", ".join(f'"{value}"' for value in each.values)
        yield f"values: Invalid value: []string{{{written}}}: {_VALUES}"


def _value_errors(key: str, values: Sequence[str]) -> Iterator[str]:
    for index, value in enumerate(values):
        wrong = label_value_errors(value)
        if wrong:
            yield f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}'


def _aggregate(errors: Iterable[str]) -> str:
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""
