"""Validation of WorkloadSpreads, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from policies.kubernetes.selectors import Toleration
from policies.workloadspread.model import (
    AdaptiveStrategy,
    Expression,
    MaxReplicas,
    NodeTerm,
    Preference,
    ScheduleStrategy,
    SubsetToleration,
    TargetFilter,
    WorkloadSpread,
)
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.validation import label_selector_error, template_holder, validate
from policies.workloadspread.workloads import AllowedKind, AllowedKinds
from tests.builders.workloadspread import CLONE_SET, STATEFUL_SET, spread, subset, term

ADVANCED = WorkloadReference("apps.kruise.io/v1beta1", "StatefulSet", "web")
GAME = WorkloadReference("game.io/v1", "Game", "web")


def errors_of(
    mine: WorkloadSpread, *others: WorkloadSpread, old: WorkloadSpread | None = None
) -> dict[str, str]:
    return {error.field: error.detail for error in validate(mine, others, old=old)}


def limited(*limits: MaxReplicas, target: WorkloadReference = CLONE_SET) -> dict[str, str]:
    subsets = (subset(name, limit) for name, limit in zip("abcd", limits, strict=False))
    return errors_of(spread(*subsets, target=target))


def test_a_plain_one_is_valid() -> None:
    assert validate(spread(subset("a", 1), subset("b"))) == ()


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        (None, "no targetRef defined in WorkloadSpread"),
        (replace(CLONE_SET, name=""), "empty TargetReference is not valid for WorkloadSpread."),
        (replace(CLONE_SET, api_version="apps/v1"), "TargetReference is not valid for CloneSet."),
        (replace(CLONE_SET, api_version="a/b/c"), "TargetReference is not valid for CloneSet."),
        (GAME, "TargetReference's GroupKind is not permitted."),
        (replace(GAME, api_version="a/b/c"), "TargetReference's GroupKind is not permitted."),
    ],
)
def test_targets_are_of_kinds_that_are_known(target: WorkloadReference | None, detail: str) -> None:
    assert errors_of(spread(subset("a"), target=target)) == {"spec.targetRef": detail}


def test_the_whitelist_allows_more() -> None:
    games = AllowedKinds((AllowedKind("game.io", "v9", "Game"),))
    assert validate(spread(subset("a"), target=GAME), allowed_kinds=games) == ()


def test_subsets_have_unique_names() -> None:
    nothing = {"spec.subsets": "subsets number must >= 1 in WorkloadSpread"}
    assert errors_of(spread()) == nothing
    assert errors_of(spread(subset("a"), subset("a"), subset(""))) == {
        "spec.subsets[1].name": "duplicated subset name a",
        "spec.subsets[2].name": "",
    }


SAME = "the maxReplicas type of all subsets must be the same"
NONE = "maxReplicas is not valid for subset"
MORE = "the sum of all subset's maxReplicas exceeds 100% is no permitted"
LESS = "maxReplicas sum of all subsets must equal 100% when type is specified as percent"


@pytest.mark.parametrize(
    ("limits", "where", "detail"),
    [
        ((1, None, 0), None, ""),
        (("40%", "60%"), None, ""),
        (("40%", None), None, ""),
        ((None, "40%", "60%"), None, ""),
        ((1, "50%"), 1, SAME),
        (("50%", 1), 1, SAME),
        ((-1, "50%"), 0, NONE),
        (("x", 1), 0, NONE),
        (("60%", "60%", 1), 1, MORE),
        (("40%", "50%"), 0, LESS),
        (("40%", None, "50%"), 0, LESS),
        (("100",), None, ""),
    ],
)
def test_limits_are_all_numbers_or_shares_of_the_whole(
    limits: tuple[MaxReplicas, ...], where: int | None, detail: str
) -> None:
    wrong = {} if where is None else {f"spec.subsets[{where}].maxReplicas": detail}
    assert limited(*limits) == wrong


def test_subsets_of_stateful_sets_have_absolute_limits() -> None:
    wrong = {"spec.subsets[0].maxReplicas": "the maxReplicas type must be Int for StatefulSet"}
    assert limited("50%", None, target=STATEFUL_SET) == wrong
    assert limited(2, None, target=ADVANCED) == {}


class TestStrategies:
    def adaptive(self, seconds: int | None, *limits: MaxReplicas) -> dict[str, str]:
        subsets = (subset(name, limit) for name, limit in zip("abc", limits, strict=False))
        strategy = ScheduleStrategy(
            "Adaptive", AdaptiveStrategy(reschedule_critical_seconds=seconds)
        )
        return errors_of(spread(*subsets, strategy=strategy))

    def test_there_are_two(self) -> None:
        wrong = {"spec.scheduleStrategy.type": "ScheduleStrategy's type is not valid"}
        assert errors_of(spread(subset("a"), strategy=ScheduleStrategy("Weird"))) == wrong
        for right in ("", "Fixed", "Adaptive"):
            assert errors_of(spread(subset("a"), strategy=ScheduleStrategy(right))) == {}

    def test_only_one_is_adaptive(self) -> None:
        detail = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy"
        found = errors_of(
            spread(subset("a"), strategy=ScheduleStrategy("Fixed", AdaptiveStrategy()))
        )
        assert found == {"spec.scheduleStrategy.type": detail}

    def test_the_last_subset_takes_what_is_left(self) -> None:
        assert set(self.adaptive(5, 1, 1)) == {"spec.scheduleStrategy.adaptive"}
        assert self.adaptive(5, 1, None) == {}
        assert self.adaptive(5, 1) == {}

    @pytest.mark.parametrize(
        ("seconds", "limits", "longest"),
        [
            (295, (1, None), None),
            (296, (1, None), 295),
            (-1, (1, None), 295),
            (147, (1, 1, None), None),
            (148, (1, 1, None), 147),
            (2**31 - 1, (None,), None),
            (None, (1, None), None),
        ],
    )
    def test_critical_seconds_add_up_to_five_minutes_at_most(
        self, seconds: int | None, limits: tuple[MaxReplicas, ...], longest: int | None
    ) -> None:
        detail = (
            f"rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {longest} is not "
            "permitted"
        )
        field = "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"
        wrong = {} if longest is None else {field: detail}
        assert self.adaptive(seconds, *limits) == wrong


def test_two_workload_spreads_may_not_have_one_target() -> None:
    mine = spread(subset("a"))
    other = replace(mine, name="other")
    detail = "ws.spec.targetRef is in conflict with other WorkloadSpread other"
    assert errors_of(mine, other) == {"spec.targetRef": detail}
    assert len(validate(mine, [other, replace(mine, name="third")])) == 1
    assert errors_of(mine, mine, replace(other, target=replace(CLONE_SET, name="else"))) == {}


def test_the_target_is_immutable() -> None:
    mine = spread(subset("a"))
    detail = "change TargetReference is not permitted for WorkloadSpread"
    moved = replace(mine, target=replace(CLONE_SET, name="else"))
    assert errors_of(mine, old=moved) == {"spec.targetRef": detail}
    newer = replace(mine, target=replace(CLONE_SET, api_version="apps.kruise.io/v1beta1"))
    assert errors_of(mine, old=newer) == {}


def test_patches_are_checked_where_there_is_a_template() -> None:
    mine = spread(subset("a"), subset("b", patched=True))

    def check(index: int, path: str) -> Iterator[FieldValidationError]:
        yield FieldValidationError(f"{path}.containers", "Required value", str(index))

    (found,) = validate(mine, patch_errors=check)
    assert str(found) == "spec.subsets[1].patch.containers: Required value: 1"
    assert validate(mine) == ()


@pytest.mark.parametrize(
    ("target", "upstream", "ours"),
    [
        (ADVANCED, "apps", "apps.kruise.io"),
        (STATEFUL_SET, "apps", "apps"),
        (CLONE_SET, "apps.kruise.io", "apps.kruise.io"),
    ],
)
def test_the_template_is_that_of_the_target(
    target: WorkloadReference, upstream: str, ours: str
) -> None:
    mine = spread(subset("a"), target=target)
    for quirks, group in ((UPSTREAM, upstream), (FIXED, ours)):
        assert template_holder(mine, quirks) == ObjectKey(group, target.kind, "web")


def test_without_a_valid_target_there_is_no_template() -> None:
    assert template_holder(spread(target=None), FIXED) is None
    assert template_holder(spread(target=GAME), FIXED) is None


class TestPlacement:
    def required(self, term: NodeTerm) -> dict[str, str]:
        return errors_of(spread(subset("a", required=term)))

    @pytest.mark.parametrize(
        ("expression", "where", "begins"),
        [
            (Expression("zone", "In"), "values", "must be specified when `operator` is 'In'"),
            (Expression("zone", "Exists", ("x",)), "values", "may not be specified when"),
            (Expression("zone", "Gt", ("1", "2")), "values", "must be specified single value"),
            (Expression("zone", "Near"), "operator", "not a valid selector operator"),
            (Expression("a b", "Exists"), "key", "name part must consist of"),
            (Expression("zone", "In", ("a b",)), "values[0]", "a valid label must be an empty"),
        ],
    )
    def test_expressions(self, expression: Expression, where: str, begins: str) -> None:
        (error,) = self.required(NodeTerm((expression,))).items()
        assert error[0] == f"spec.subsets[0].requiredNodeSelector.matchExpressions[0].{where}"
        assert error[1].startswith(begins)

    @pytest.mark.parametrize(
        ("expression", "where"),
        [
            (Expression("metadata.name", "In", ("A_b",)), "values[0]"),
            (Expression("metadata.name", "In", ("a", "b")), "values"),
            (Expression("metadata.name", "Exists"), "operator"),
            (Expression("metadata.uid", "In", ("a",)), "key"),
        ],
    )
    def test_fields(self, expression: Expression, where: str) -> None:
        field = f"spec.subsets[0].requiredNodeSelector.matchFields[0].{where}"
        assert list(self.required(NodeTerm((), (expression,)))) == [field]

    def test_preferences(self) -> None:
        preferences = (Preference(0, NodeTerm()), Preference(101, term("a b", "x y")))
        found = errors_of(spread(subset("a", preferred=preferences)))
        path = "spec.subsets[0].preferredNodeSelector"
        assert list(found) == [
            f"{path}[0].weight",
            f"{path}[1].weight",
            f"{path}[1].preference.matchExpressions[0].key",
        ]

    @pytest.mark.parametrize(
        ("toleration", "bounded", "where"),
        [
            (Toleration("t", "Exists"), False, None),
            (Toleration("", "Exists"), False, None),
            (Toleration("t", "", "x", "NoExecute"), True, None),
            (Toleration("", "Equal", "x"), False, "operator"),
            (Toleration("a b", "Exists"), False, "key"),
            (Toleration("t", "Exists", "x"), False, "operator"),
            (Toleration("t", "Equal", "x y"), False, "operator"),
            (Toleration("t", "Near", "x"), False, "operator"),
            (Toleration("t", "Exists", "", "Never"), False, "effect"),
            (Toleration("t", "Exists", "", "NoSchedule"), True, "effect"),
        ],
    )
    def test_tolerations(self, toleration: Toleration, where: str | None, *, bounded: bool) -> None:
        found = errors_of(spread(subset("a", tolerations=(SubsetToleration(toleration, bounded),))))
        wrong = [] if where is None else [f"spec.subsets[0].tolerations[0].{where}"]
        assert list(found) == wrong


NEEDS_VALUES = "for 'in', 'notin' operators, values set can't be empty"
TAKES_NONE = "values set must be empty for exists and does not exist"


class TestFilters:
    def test_an_invalid_selector_is_reported(self) -> None:
        mine = spread(subset("a"), target_filter=TargetFilter(error="no"))
        assert errors_of(mine) == {"spec.targetFilter": "no"}

    @pytest.mark.parametrize(
        ("expression", "problem"),
        [
            (Expression("app", "In", ("web",)), ""),
            (Expression("app", "Exists"), ""),
            (Expression("app", "Like"), '"Like" is not a valid label selector operator'),
            (Expression("app", "In"), f"values: Invalid value: []string(nil): {NEEDS_VALUES}"),
            (
                Expression("app", "DoesNotExist", ("x", "y")),
                f'values: Invalid value: []string{{"x", "y"}}: {TAKES_NONE}',
            ),
        ],
    )
    def test_expressions(self, expression: Expression, problem: str) -> None:
        assert label_selector_error({"app": "web"}, [expression]) == problem

    def test_labels(self) -> None:
        found = label_selector_error({"app": "a b"}, ())
        assert found.startswith('values[0][app]: Invalid value: "a b": a valid label must be')

    def test_all_errors_of_one_requirement_are_reported_together(self) -> None:
        found = label_selector_error({}, [Expression("a b", "In"), Expression("app", "Like")])
        assert found.startswith('[key: Invalid value: "a b": name part must consist')
        assert found.endswith("values set can't be empty]")
