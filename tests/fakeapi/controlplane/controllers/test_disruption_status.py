"""A disruption budget's arithmetic: expected, desired, healthy, allowed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from fakeapi.controlplane.controllers.disruption_status import (
    Budget,
    BudgetError,
    BudgetSpec,
    BudgetStatus,
    IntOrPercent,
    count_healthy,
    decode_budget,
    expected_and_desired,
    new_status,
    remaining_disrupted_pods,
    status_patch,
)
from fakeapi.controlplane.controllers.types import Pod, decode_pod
from tests.builders import encoded

NOW = "2026-01-01T00:10:00Z"
NOW_NS = parse_time(NOW)


@dataclass(frozen=True)
class Sum:
    """A spec, how many pods match and what their controllers' scales are, and what follows."""

    minimum: IntOrPercent | None
    maximum: IntOrPercent | None
    matching: int
    scale: int
    expected: int
    desired: int


SUMS = [
    Sum(2, None, 5, 9, 5, 2),
    Sum(0, None, 5, 9, 5, 0),
    Sum("50%", None, 5, 9, 9, 5),
    Sum("0%", None, 5, 9, 9, 0),
    Sum("100%", None, 5, 9, 9, 9),
    Sum("1%", None, 5, 9, 9, 1),
    Sum(None, 1, 5, 9, 9, 8),
    Sum(None, 0, 5, 9, 9, 9),
    Sum(None, 10, 5, 9, 9, 0),
    Sum(None, "40%", 5, 5, 5, 3),
    Sum(None, "33%", 5, 10, 10, 6),
    Sum(None, "100%", 5, 5, 5, 0),
    Sum(None, None, 5, 5, 0, 0),
]


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_what_is_expected_and_desired(case: Sum) -> None:
    spec = BudgetSpec(None, case.minimum, case.maximum)
    assert expected_and_desired(spec, case.matching, case.scale) == (case.expected, case.desired)


@pytest.mark.parametrize("value", ["5", "x%", "%", "-5%", "1.5%"])
def test_what_is_no_percentage(value: str) -> None:
    with pytest.raises(BudgetError, match="string is not a percentage"):
        expected_and_desired(BudgetSpec(None, value), 5, 5)


def pod(name: str, *, ready: bool = True, deleting: bool = False) -> Pod:
    metadata = {"name": name, **({"deletionTimestamp": NOW} if deleting else {})}
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return decode_pod(encoded({"metadata": metadata, "status": status}))  # type: ignore[arg-type]


def test_which_pods_count_as_healthy() -> None:
    pods = [pod("a"), pod("b", ready=False), pod("c", deleting=True), pod("d"), pod("e")]
    promised = {"d": "2026-01-01T00:09:59Z", "e": "2026-01-01T00:08:00Z"}
    assert count_healthy(pods, promised, NOW_NS) == 2, "a, and e whose time is over"


def test_disrupted_pods_are_kept_for_two_minutes() -> None:
    noted = {
        "kept": "2026-01-01T00:09:00Z",
        "just": "2026-01-01T00:08:00Z",
        "late": "2026-01-01T00:07:59Z",
        "gone": "2026-01-01T00:09:00Z",
        "going": "2026-01-01T00:09:00Z",
    }
    budget = Budget(status=BudgetStatus(disrupted_pods=noted))
    pods = [pod("kept"), pod("just"), pod("late"), pod("going", deleting=True), pod("other")]
    found = remaining_disrupted_pods(budget, pods, NOW_NS)
    assert found.pods == {name: noted[name] for name in ("kept", "just")}
    assert [each.metadata.name for each in found.overdue] == ["late"]
    assert found.resync_after == pytest.approx(0.001)


def budget(generation: int = 1, **status: object) -> Budget:
    metadata = {"name": "b", "namespace": "n", "generation": generation, "resourceVersion": "7"}
    return decode_budget(encoded({"metadata": metadata, "status": status}))  # type: ignore[arg-type]


ALLOWING = [
    # expected, desired, healthy, allowed, reason
    (5, 3, 4, 1, "SufficientPods"),
    (5, 3, 3, 0, "InsufficientPods"),
    (5, 3, 1, 0, "InsufficientPods"),
    (0, 0, 4, 0, "InsufficientPods"),
    (3, 0, 3, 3, "SufficientPods"),
]


@pytest.mark.parametrize(("expected", "wanted", "healthy", "allowed", "reason"), ALLOWING)
def test_what_is_allowed(
    expected: int, wanted: int, healthy: int, allowed: int, reason: str
) -> None:
    status = new_status(budget(), expected, wanted, healthy, {}, NOW)
    assert status is not None
    assert (status.disruptions_allowed, status.observed_generation) == (allowed, 1)
    assert status.conditions == [
        {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": reason,
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": NOW,
        }
    ]


def test_an_equal_status_is_not_written() -> None:
    status = new_status(budget(), 5, 3, 4, {"p": NOW}, NOW)
    assert status is not None
    written = status_patch(budget(), status)["status"]
    assert new_status(budget(**written), 5, 3, 4, {"p": NOW}, NOW) is None
    assert new_status(budget(2, **written), 5, 3, 4, {"p": NOW}, NOW)
    assert new_status(budget(**written), 5, 3, 4, {}, NOW)


def test_an_expired_disrupted_pod_is_removed_from_the_map() -> None:
    before = budget(disruptedPods={"p": NOW, "q": NOW})
    status = new_status(before, 5, 3, 4, {"q": NOW}, NOW)
    assert status is not None
    assert status_patch(before, status)["status"]["disruptedPods"] == {"p": None, "q": NOW}
    assert NOW_NS // NS_PER_SECOND == 1767226200
