"""Budgets on columns are charged as by the reference engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.releases import RELEASES, PdbViolationCount, Release
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.disruption_budgets import BudgetCoverage, split_by_pdb_violation
from policies.preemption.policy import KUBE_SCHEDULER
from policies.preemption.vectorized.disruption_budgets import count_violations, pdb_violations
from policies.preemption.vectorized.row_view import RowView
from tests.builders import budget, node, pod, snapshot

RELEASE_BY_RULE = {each.pdb_violation_count: each for each in RELEASES.values()}
SPARED = RELEASE_BY_RULE[PdbViolationCount.UNTIL_FIRST_VIOLATION]
CHARGED = RELEASE_BY_RULE[PdbViolationCount.ALL_BUDGETS]
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


def violations_on(view: RowView, potential: Bools, release: Release, *counters: int) -> Bools:
    allowed = view.columns.budgets.allowed
    found = count_violations(view, potential, allowed, release, *counters)
    assert (pdb_violations(view, potential, allowed, release) == found).all()
    return found


def whole(now: Snapshot, release: Release) -> RowView:
    columns = ClusterColumns(KUBE_SCHEDULER, release)
    columns.follow(now)
    return RowView(columns, slice(None))


def everybody(view: RowView) -> Bools:
    counts = view.columns.pod_block.used_counts()
    marks: Bools = np.arange(view.columns.pod_block.depth())[:, None] < counts
    return marks


def broken(view: RowView, marks: Bools) -> dict[str, set[str]]:
    """Return the names of the marked pods by node, without nodes that have none."""
    found: dict[str, set[str]] = {}
    for depth, place in np.argwhere(marks).tolist():
        row = int(view.numbers[place])
        name = view.columns.names[row]
        found.setdefault(name, set()).add(view.columns.pods[row][depth].name)
    return found


def by_reference(view: RowView, potential: Bools, now: Snapshot, release: Release) -> object:
    coverage, found = BudgetCoverage(now.budgets, release), {}
    for place, row in enumerate(view.numbers.tolist()):
        depths = np.flatnonzero(potential[:, place]).tolist()
        groups = split_by_pdb_violation([view.columns.pods[row][at] for at in depths], coverage)
        if groups.violating:
            found[view.columns.names[row]] = {each.name for each in groups.violating}
    return found


@given(crowds(), st.sampled_from(list(RELEASES.values())), st.data())
def test_every_row_is_charged_as_the_reference_does(
    now: Snapshot, release: Release, data: st.DataObject
) -> None:
    view = whole(now, release)
    places = data.draw(st.lists(st.sampled_from(range(len(NAMES))), unique=True), label="rows")
    view = view.select(np.array(places, np.int64))
    shape = view.removed_marks.shape
    spared = data.draw(
        st.lists(st.booleans(), min_size=view.removed_marks.size, max_size=view.removed_marks.size),
        label="spared",
    )
    everyone = everybody(view)[:, view.numbers]
    potential = everyone & ~np.array(spared, np.bool_).reshape(shape)
    found = violations_on(view, potential, release)
    assert broken(view, found) == by_reference(view, potential, now, release)
    for counters in (1, 2, 7, 13):
        few = violations_on(view, potential, release, counters)
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
def test_budgets_after_a_violation_are_charged_by_the_release(
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
    assert broken(view, violations_on(view, potential, release)) == expected
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
    assert broken(view, violations_on(view, everybody(view), SPARED)) == {"n0": {"breaks"}}


def test_each_row_has_its_own_counters() -> None:
    now = snapshot(
        *(node(name) for name in NAMES),
        *(pod(f"{name}-{n}", on=name, labels={"app": "web"}) for name in NAMES for n in (0, 1)),
        budget(match={"app": "web"}, allowed=1),
    )
    view = whole(now, SPARED)
    for counters in (1, 2, 3, 1000):
        found = broken(view, violations_on(view, everybody(view), SPARED, counters))
        assert found == {name: {f"{name}-1"} for name in NAMES}


def test_a_budget_may_allow_more_than_can_be_counted() -> None:
    now = snapshot(
        node("n0"),
        pod("a", on="n0", labels={"app": "web"}),
        budget("endless", match={"app": "web"}, allowed=2**70),
        budget("overdrawn", match={"tier": "front"}, allowed=-(2**70)),
    )
    view = whole(now, SPARED)
    assert broken(view, violations_on(view, everybody(view), SPARED)) == {}
