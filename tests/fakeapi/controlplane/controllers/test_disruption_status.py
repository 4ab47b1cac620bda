"""A disruption budget's arithmetic: expected, desired, healthy, allowed."""

from __future__ import annotations

import pytest

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from fakeapi.controlplane.controllers.disruption_status import (
    Budget,
    BudgetError,
    BudgetSpec,
    BudgetStatus,
    count_healthy,
    decode_budget,
    expected_and_desired,
    new_status,
    remaining_disrupted_pods,
    status_patch,
)
from fakeapi.controlplane.controllers.types import IntOrPercent, Pod, decode_pod
from tests.builders import encoded, manifest, pod_json

NOW = "2026-01-01T00:10:00Z"
NOW_NS = parse_time(NOW)


COUNTS: list[tuple[IntOrPercent | None, IntOrPercent | None, int, int, int, int]] = [
    # minAvailable, maxUnavailable, matching pods, scale of their controllers → expected, desired
    (2, None, 5, 9, 5, 2),
    (0, None, 5, 9, 5, 0),
    ("50%", None, 5, 9, 9, 5),
    ("0%", None, 5, 9, 9, 0),
    ("100%", None, 5, 9, 9, 9),
    ("1%", None, 5, 9, 9, 1),
    (None, 1, 5, 9, 9, 8),
    (None, 0, 5, 9, 9, 9),
    (None, 10, 5, 9, 9, 0),
    (None, "40%", 5, 5, 5, 3),
    (None, "33%", 5, 10, 10, 6),
    (None, "100%", 5, 5, 5, 0),
    (None, None, 5, 5, 0, 0),
]


@pytest.mark.parametrize(("minimum", "maximum", "matching", "scale", "expected", "desired"), COUNTS)
def test_expected_and_desired_pods(
    minimum: IntOrPercent | None,
    maximum: IntOrPercent | None,
    matching: int,
    scale: int,
    expected: int,
    desired: int,
) -> None:
    spec = BudgetSpec(None, minimum, maximum)
    assert expected_and_desired(spec, matching, scale) == (expected, desired)


@pytest.mark.parametrize("value", ["5", "x%", "%", "-5%", "1.5%", f"{'9' * 5000}%"])
def test_an_invalid_percentage_is_an_error(value: str) -> None:
    with pytest.raises(BudgetError, match="string is not a percentage"):
        expected_and_desired(BudgetSpec(None, value), 5, 5)


def decoded_pod(name: str, *, ready: bool = True, deleting: bool = False) -> Pod:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    metadata = {"deletionTimestamp": NOW} if deleting else {}
    return decode_pod(encoded(pod_json(name, metadata=metadata, status=status)))  # type: ignore[arg-type]


def test_ready_pods_that_stay_count_as_healthy() -> None:
    ready = [decoded_pod(name) for name in "ade"]
    pods = [*ready, decoded_pod("b", ready=False), decoded_pod("c", deleting=True)]
    disrupted = {"d": "2026-01-01T00:09:59Z", "e": "2026-01-01T00:08:00Z"}
    assert count_healthy(pods, disrupted, NOW_NS) == 2, "a, and e, whose disruption is too old"


def test_disrupted_pods_are_kept_for_two_minutes() -> None:
    disrupted = {
        "kept": "2026-01-01T00:09:00Z",
        "just": "2026-01-01T00:08:00Z",
        "late": "2026-01-01T00:07:59Z",
        "gone": "2026-01-01T00:09:00Z",
        "going": "2026-01-01T00:09:00Z",
    }
    budget = Budget(status=BudgetStatus(disrupted_pods=disrupted))
    pods = [decoded_pod(name) for name in ("kept", "just", "late", "other")]
    pods.append(decoded_pod("going", deleting=True))
    found = remaining_disrupted_pods(budget, pods, NOW_NS)
    assert found.pods == {name: disrupted[name] for name in ("kept", "just")}
    assert [each.metadata.name for each in found.overdue] == ["late"]
    assert found.resync_after == pytest.approx(0.001)


def budget(generation: int = 1, **status: object) -> Budget:
    metadata = {"generation": generation, "resourceVersion": "7"}
    document = manifest("PodDisruptionBudget", "b", metadata=metadata, status=status)
    return decode_budget(encoded(document))  # type: ignore[arg-type]


ALLOWED = [
    # expected, desired, healthy, allowed, reason
    (5, 3, 4, 1, "SufficientPods"),
    (5, 3, 3, 0, "InsufficientPods"),
    (5, 3, 1, 0, "InsufficientPods"),
    (0, 0, 4, 0, "InsufficientPods"),
    (3, 0, 3, 3, "SufficientPods"),
]


@pytest.mark.parametrize(("expected", "desired", "healthy", "allowed", "reason"), ALLOWED)
def test_allowed(expected: int, desired: int, healthy: int, allowed: int, reason: str) -> None:
    status = new_status(budget(), expected, desired, healthy, {}, NOW)
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
