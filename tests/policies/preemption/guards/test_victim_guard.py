"""Guards of victims: until when a pod is protected, and how that is explained."""

from __future__ import annotations

import pytest

from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.catalog import DELETION_COST, deletion_cost
from policies.preemption.guards.victim_guard import (
    ALWAYS,
    UNPROTECTED,
    VictimGuard,
    min_runtime,
    protected_pods,
    unreadable_cost,
)
from tests.builders import SECOND, pod

MINUTE = min_runtime("minRuntime", lambda each: each.name != "free", 60 * SECOND)


@pytest.mark.parametrize(
    ("guard", "of", "until"),
    [
        (MINUTE, pod(started=5), 65 * SECOND),
        (MINUTE, pod(), ALWAYS),
        (MINUTE, pod("free", started=5), UNPROTECTED),
        (protected_pods("a", lambda each: each.name == "a"), pod("a"), ALWAYS),
        (protected_pods("a", lambda each: each.name == "a"), pod("b"), UNPROTECTED),
        (unreadable_cost(deletion_cost()), pod(annotations={DELETION_COST: "x"}), ALWAYS),
        (unreadable_cost(deletion_cost()), pod(annotations={DELETION_COST: "1"}), UNPROTECTED),
    ],
)
def test_a_guard_protects_until_a_time(guard: VictimGuard, of: Pod, until: int) -> None:
    assert guard.until_ns(of) == until


@pytest.mark.parametrize(
    ("guard", "of", "text"),
    [
        (MINUTE, pod(started=5), "protected by minRuntime for another 1m5s"),
        (MINUTE, pod(), "protected by minRuntime"),
        (
            unreadable_cost(deletion_cost()),
            pod(annotations={DELETION_COST: "x"}),
            f"protected by deletion cost: annotation {DELETION_COST}: 'x' is no integer",
        ),
    ],
)
def test_a_protection_is_explained(guard: VictimGuard, of: Pod, text: str) -> None:
    assert guard.explain(of, now_ns=0) == text
