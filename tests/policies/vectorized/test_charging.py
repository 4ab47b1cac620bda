"""Budgets charged on columns are charged as on one node after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.columns import Columns
from policies.columns.coded import Bools
from policies.model import Snapshot
from policies.policy import KUBE_SCHEDULER
from policies.preemption import Coverage, group_by_budget
from policies.upstream import RELEASES, BudgetAfterViolation, Release
from policies.vectorized.charging import violating
from policies.vectorized.view import View
from tests.builders import budget, node, pod, snapshot

RELEASE_BY_RULE = {each.budget_after_violation: each for each in RELEASES.values()}
SPARED = RELEASE_BY_RULE[BudgetAfterViolation.SPARED]
CHARGED = RELEASE_BY_RULE[BudgetAfterViolation.CHARGED]
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"app": "web"},
    {"tier": "front"},
    {"app": "web", "tier": "front", "x": "y"},
)
NAMES = [f"n{number}" for number in range(5)]


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Draw nodes full of pods that several budgets cover, some of them with room for a few."""
    pods = [
        pod(
            f"pod-{number}",
            on=draw(st.sampled_from(NAMES)),
            labels=draw(st.sampled_from(LABELS)),
            namespace=draw(st.sampled_from(["default", "default", "other"])),
        )
        for number in range(draw(st.integers(0, 20)))
    ]
    budgets = [
        budget(
            f"budget-{number}",
            match=draw(st.sampled_from(({"app": "web"}, {"tier": "front"}, {"x": "y"}, {}, None))),
            allowed=draw(st.integers(-1, 3)),
            namespace=draw(st.sampled_from(["default", "default", "other"])),
            disrupted=draw(st.sets(st.sampled_from(["pod-0", "pod-1", "pod-2"]), max_size=2)),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    return snapshot(*map(node, NAMES), *pods, *budgets)


def whole(now: Snapshot, release: Release) -> View:
    columns = Columns(KUBE_SCHEDULER, release)
    columns.follow(now)
    return View(columns, slice(None))


def everybody(view: View) -> Bools:
    counts = view.columns.cells.used_counts()
    marks: Bools = np.arange(view.columns.cells.depth())[:, None] < counts
    return marks


def broken(view: View, marks: Bools) -> dict[str, set[str]]:
    """Name the pods that are marked, by node; nodes without any are left out."""
    found: dict[str, set[str]] = {}
    for depth, place in np.argwhere(marks).tolist():
        row = int(view.numbers[place])
        name = view.columns.names[row]
        found.setdefault(name, set()).add(view.columns.pods[row][depth].name)
    return found


def by_reference(view: View, potential: Bools, now: Snapshot, release: Release) -> object:
    coverage, found = Coverage(now.budgets, release), {}
    for place, row in enumerate(view.numbers.tolist()):
        depths = np.flatnonzero(potential[:, place]).tolist()
        groups = group_by_budget([view.columns.pods[row][at] for at in depths], coverage)
        if groups.violating:
            found[view.columns.names[row]] = {each.name for each in groups.violating}
    return found


@given(crowds(), st.sampled_from(list(RELEASES.values())), st.data())
def test_every_row_is_charged_as_the_reference_does(
    now: Snapshot, release: Release, data: st.DataObject
) -> None:
    view = whole(now, release)
    places = data.draw(st.lists(st.sampled_from(range(len(NAMES))), unique=True), label="rows")
    view = view.picked(np.array(places, np.int64))
    shape = view.away.shape
    spared = data.draw(
        st.lists(st.booleans(), min_size=view.away.size, max_size=view.away.size), label="spared"
    )
    everyone = everybody(view)[:, view.numbers]
    potential = everyone & ~np.array(spared, np.bool_).reshape(shape)
    found = violating(view, potential, release)
    assert broken(view, found) == by_reference(view, potential, now, release)
    for counters in (1, 2, 7, 13):
        few = violating(view, potential, release, counters)
        assert few.tolist() == found.tolist()


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        # What breaks "first" is charged to "second" as well, or not: so much is left for the last.
        (CHARGED, {"n0": {"both-0", "both-1", "second"}}),
        (SPARED, {"n0": {"both-0", "both-1"}}),
    ],
    ids=["1.36 and before", "1.37"],
)
def test_after_a_violation_the_other_budgets_are_charged_or_spared(
    release: Release, expected: object
) -> None:
    now = snapshot(
        node("n0"),
        pod("both-0", on="n0", priority=9, labels={"app": "web", "tier": "front"}),
        pod("both-1", on="n0", priority=8, labels={"app": "web", "tier": "front"}),
        pod("second", on="n0", priority=7, labels={"tier": "front"}),
        budget("first", match={"app": "web"}, allowed=0),
        budget("second", match={"tier": "front"}, allowed=2),
    )
    view = whole(now, release)
    potential = everybody(view)
    assert broken(view, violating(view, potential, release)) == expected
    assert by_reference(view, potential, now, release) == expected


def test_a_pod_whose_eviction_was_charged_already_is_not_charged_again() -> None:
    now = snapshot(
        node("n0"),
        pod("gone", on="n0", priority=9, labels={"app": "web"}),
        pod("stays", on="n0", priority=8, labels={"app": "web"}),
        pod("breaks", on="n0", priority=7, labels={"app": "web"}),
        budget("strict", match={"app": "web"}, allowed=1, disrupted=["gone"]),
        budget("loose", match={"app": "web"}, allowed=5, disrupted=["breaks"]),
    )
    view = whole(now, SPARED)
    assert broken(view, violating(view, everybody(view), SPARED)) == {"n0": {"breaks"}}


def test_each_row_has_counters_of_its_own() -> None:
    now = snapshot(
        *(node(name) for name in NAMES),
        *(pod(f"{name}-{n}", on=name, labels={"app": "web"}) for name in NAMES for n in (0, 1)),
        budget(match={"app": "web"}, allowed=1),
    )
    view = whole(now, SPARED)
    for counters in (1, 2, 3, 1000):
        found = broken(view, violating(view, everybody(view), SPARED, counters))
        assert found == {name: {f"{name}-1"} for name in NAMES}


def test_a_budget_may_allow_more_than_can_be_counted() -> None:
    now = snapshot(
        node("n0"),
        pod("a", on="n0", labels={"app": "web"}),
        budget("endless", match={"app": "web"}, allowed=2**70),
        budget("overdrawn", match={"tier": "front"}, allowed=-(2**70)),
    )
    view = whole(now, SPARED)
    assert broken(view, violating(view, everybody(view), SPARED)) == {}
