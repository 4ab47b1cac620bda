"""Pressure as conditions, taints, and pods that are not admitted."""

from __future__ import annotations

import pytest

from policies.eviction.node_conditions import admit, pressure_conditions, pressure_taints
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Pressure
from tests.builders import taint, toleration
from tests.builders.eviction import evictable

MEMORY, DISK, PID = Pressure.MEMORY, Pressure.DISK, Pressure.PID


@pytest.mark.parametrize(
    ("pressures", "expected"),
    [
        (
            (),
            [
                ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ],
        ),
        (
            (MEMORY, DISK, PID),
            [
                ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
                ("KubeletHasDiskPressure", "kubelet has disk pressure"),
                ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
            ],
        ),
    ],
)
def test_a_node_has_a_condition_for_each_pressure(
    pressures: tuple[Pressure, ...], expected: list[tuple[str, str]]
) -> None:
    found = pressure_conditions(pressures)
    assert [each.type for each in found] == ["MemoryPressure", "DiskPressure", "PIDPressure"]
    assert [each.status for each in found] == [bool(pressures)] * 3
    assert [(each.reason, each.message) for each in found] == expected


def test_each_pressure_has_a_taint() -> None:
    assert pressure_taints(()) == ()
    assert pressure_taints([DISK]) == (taint("node.kubernetes.io/disk-pressure:NoSchedule"),)
    assert set(pressure_taints(list(Pressure))) == {
        taint(f"node.kubernetes.io/{kind}-pressure:NoSchedule")
        for kind in ("memory", "disk", "pid")
    }


PLAIN = evictable()
BEST_EFFORT = evictable(best_effort=True)
TOLERANT = evictable(
    best_effort=True,
    tolerations=(toleration("node.kubernetes.io/memory-pressure", "Exists", effect="NoSchedule"),),
)
OTHERWISE_TOLERANT = evictable(
    best_effort=True, tolerations=(toleration("node.kubernetes.io/disk-pressure", "Exists"),)
)
CRITICAL = evictable(best_effort=True, priority=2_000_000_000)
STATIC = evictable(best_effort=True, source="file")
PODS = (PLAIN, BEST_EFFORT, TOLERANT, OTHERWISE_TOLERANT, CRITICAL, STATIC)


@pytest.mark.parametrize(
    ("pressures", "admitted"),
    [
        ([], [True] * 6),
        ([MEMORY], [True, False, True, False, True, True]),
        ([DISK], [False, False, False, False, True, True]),
        ([PID], [False, False, False, False, True, True]),
        ([MEMORY, DISK], [False, False, False, False, True, True]),
    ],
)
def test_pressure_restricts_the_pods_that_are_admitted(
    pressures: list[Pressure], admitted: list[bool]
) -> None:
    assert [admit(pod, pressures).admitted for pod in PODS] == admitted


def test_a_refusal_names_the_conditions() -> None:
    refusal = admit(PLAIN, [MEMORY, DISK])
    assert (refusal.reason, refusal.message) == (
        "Evicted",
        "The node had condition: [DiskPressure MemoryPressure]. ",
    )


@pytest.mark.parametrize(
    ("pod", "critical"),
    [
        (evictable(), False),
        (evictable(source="api"), False),
        (evictable(source="file"), True),
        (evictable(source="http"), True),
        (evictable(source=""), True),
        (evictable(mirror=True), True),
        (evictable(priority=1_999_999_999), False),
        (evictable(priority=2_000_000_000), True),
    ],
)
def test_static_mirror_and_high_priority_pods_are_critical(
    pod: EvictablePod, *, critical: bool
) -> None:
    assert pod.critical is critical
