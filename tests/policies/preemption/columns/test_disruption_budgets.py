"""Coverage by class equals a walk over all budgets and classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.kubernetes.releases import NEWEST, RELEASES, EmptySelector, Release
from policies.kubernetes.selectors import LabelSelector, label_requirement
from policies.kubernetes.snapshot import DisruptionBudget, Pod
from policies.preemption.columns.disruption_budgets import DisruptionBudgetColumns
from policies.preemption.columns.label_classes import LabelClasses
from tests.builders import budget, pod

EMPTY_MATCHES = {each.empty_selector: each for each in RELEASES.values()}


class CoveredClasses:
    """Classes and budgets as the columns of a cluster keep them."""

    def __init__(self, release: Release = NEWEST) -> None:
        self.classes = LabelClasses()
        self.budgets = DisruptionBudgetColumns(self.classes, release)
        self._numbers: dict[str, int] = {}

    def add(self, *pods: Pod) -> None:
        for each in pods:
            number, new = self.classes.acquire(each)
            if new:
                self.budgets.add_class(number, each)
            self._numbers[each.name] = number

    def remove(self, *names: str) -> None:
        for name in names:
            number = self._numbers.pop(name)
            if self.classes.release(number):
                self.budgets.remove_class(number)

    def of(self, name: str) -> list[str]:
        """Return the names of the budgets of a pod in the order in which they are charged."""
        places = self.budgets.covering[:, self._numbers[name]].tolist()
        found = [place for place in places if place >= 0]
        assert places == found + [-1] * (len(places) - len(found))
        return [self.budgets.budgets[place].name for place in found]


def web(name: str = "web", **labels: str) -> Pod:
    return pod(name, labels={"app": "web", **labels})


def covering(name: str, **match: str) -> DisruptionBudget:
    return budget(name, match=match)


def test_budgets_cover_existing_classes() -> None:
    covered = CoveredClasses()
    covered.add(web(), pod("db", labels={"app": "db"}), pod("bare"))
    covered.budgets.follow([covering("b", app="web"), covering("a", app="web"), budget("none")])
    assert covered.of("web") == ["b", "a"]
    assert covered.of("db") == []
    assert covered.of("bare") == []


def test_budgets_cover_later_classes() -> None:
    covered = CoveredClasses()
    covered.budgets.follow([covering("b", app="web"), covering("a", tier="front")])
    covered.add(web(), web("front", tier="front"))
    assert covered.of("web") == ["b"]
    assert covered.of("front") == ["b", "a"]


def test_a_budget_covers_its_own_namespace_only() -> None:
    covered = CoveredClasses()
    covered.add(web())
    elsewhere = budget("elsewhere", match={"app": "web"}, namespace="other")
    covered.budgets.follow([elsewhere, covering("here", app="web")])
    covered.add(pod("other", labels={"app": "web"}, namespace="other"))
    assert covered.of("web") == ["here"]
    assert covered.of("other") == ["elsewhere"]


@pytest.mark.parametrize(
    ("rule", "expected"), [(EmptySelector.NOTHING, []), (EmptySelector.EVERYTHING, ["empty"])]
)
@pytest.mark.parametrize("order", ["pods first", "budgets first"])
def test_an_empty_selector_covers_pods_by_the_release(
    rule: EmptySelector, expected: list[str], order: str
) -> None:
    covered = CoveredClasses(EMPTY_MATCHES[rule])
    if order == "pods first":
        covered.add(web())
    covered.budgets.follow([budget("empty", match={})])
    if order == "budgets first":
        covered.add(web())
    assert covered.of("web") == expected


def test_a_changed_allowance_does_not_change_the_coverage() -> None:
    covered = CoveredClasses()
    before = [covering("b", app="web"), covering("a", app="web")]
    covered.budgets.follow(before)
    covered.add(web())
    table = covered.budgets.covering
    covered.budgets.follow(
        [replace(before[0], allowed=3, disrupted=frozenset(["gone"])), before[1]]
    )
    assert covered.budgets.covering is table
    assert covered.of("web") == ["b", "a"]
    assert covered.budgets.allowed.tolist() == [3, 0]
    assert covered.budgets.disrupted == {0: frozenset(["gone"])}
    covered.budgets.follow(before)
    assert covered.budgets.allowed.tolist() == [0, 0]
    assert covered.budgets.disrupted == {}


def test_allowances_are_clamped() -> None:
    covered = CoveredClasses()
    covered.budgets.follow([budget(allowed=2**70), budget(allowed=-(2**70)), budget(allowed=-1)])
    high, low, exact = covered.budgets.allowed.tolist()
    assert (high > 2**40, low < -(2**40), exact) == (True, True, -1)


def test_a_changed_selector_covers_existing_and_later_classes() -> None:
    covered = CoveredClasses()
    covered.add(web(), pod("db", labels={"app": "db"}))
    covered.budgets.follow([covering("a", app="web")])
    covered.budgets.follow([covering("a", app="db")])
    covered.add(web("front", tier="front"))
    assert (covered.of("web"), covered.of("db"), covered.of("front")) == ([], ["a"], [])


def test_a_deleted_budget_moves_the_others_up() -> None:
    covered = CoveredClasses()
    covered.add(web())
    a, b, c = (covering(name, app="web") for name in "abc")
    covered.budgets.follow([a, b, c])
    covered.budgets.follow([a, c])
    assert covered.of("web") == ["a", "c"]
    covered.budgets.follow([c, a])
    assert covered.of("web") == ["c", "a"]
    covered.budgets.follow([])
    assert covered.of("web") == []
    assert covered.budgets.allowed.tolist() == []


def test_a_class_that_comes_between_two_changes_of_status_is_covered() -> None:
    covered = CoveredClasses()
    covered.budgets.follow([budget("a", match={"app": "web"}, allowed=1)])
    covered.budgets.follow([budget("a", match={"app": "web"}, allowed=2)])
    covered.add(web())
    assert covered.of("web") == ["a"]


def test_a_pod_may_have_more_budgets_than_any_before() -> None:
    covered = CoveredClasses()
    covered.add(web())
    covered.budgets.follow([covering(str(count), app="web") for count in range(9)])
    covered.add(web("front", tier="front"))
    covered.budgets.follow(
        [
            *(covering(str(count), app="web") for count in range(9)),
            *(covering(f"front-{count}", tier="front") for count in range(9)),
        ]
    )
    assert covered.of("web") == [str(count) for count in range(9)]
    assert len(covered.of("front")) == 18


def test_a_new_class_may_have_more_budgets_than_any_before() -> None:
    covered = CoveredClasses()
    covered.add(web())
    covered.budgets.follow(
        [covering("a", app="web"), covering("b", tier="x"), covering("c", x="y")]
    )
    covered.add(web("all", tier="x", x="y"))
    assert covered.of("all") == ["a", "b", "c"]
    assert covered.of("web") == ["a"]


def test_a_new_classs_budgets_are_in_the_order_of_the_budgets() -> None:
    selector = LabelSelector((label_requirement("app", "NotIn", ["db"]),))
    covered = CoveredClasses()
    not_db = replace(budget("not db"), selector=selector)
    covered.budgets.follow([covering("x", x="y"), covering("web", app="web"), not_db])
    covered.add(web(x="y"))
    assert covered.of("web") == ["x", "web", "not db"]


def test_many_classes_are_covered() -> None:
    covered = CoveredClasses()
    covered.budgets.follow([covering("a", app="web")])
    covered.add(*(web(str(count), unique=str(count)) for count in range(100)))
    assert {tuple(covered.of(str(count))) for count in range(100)} == {("a",)}
    covered.budgets.follow([covering("b", app="web")])
    assert {tuple(covered.of(str(count))) for count in range(100)} == {("b",)}


def test_a_number_that_is_used_again_has_the_new_classs_budgets() -> None:
    covered = CoveredClasses()
    covered.budgets.follow([covering("a", app="web"), covering("b", app="web")])
    covered.add(web())
    covered.remove("web")
    covered.add(pod("db", labels={"app": "db"}))
    assert covered.of("db") == []
    assert (covered.budgets.covering == -1).all()


def test_requirements_without_values_are_matched_in_full() -> None:
    selector = LabelSelector((label_requirement("app", "NotIn", ["db"]),))
    covered = CoveredClasses()
    covered.add(web())
    covered.budgets.follow([replace(budget("not db"), selector=selector)])
    covered.add(pod("db", labels={"app": "db"}), web("front", tier="front"))
    assert (covered.of("web"), covered.of("db"), covered.of("front")) == (
        ["not db"],
        [],
        ["not db"],
    )
