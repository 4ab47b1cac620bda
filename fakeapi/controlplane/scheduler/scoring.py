"""Scores of feasible nodes: two simple rules, and extenders' scores.

    least_allocated      the percentage of CPU and memory that would be left, on average  0 … 100
    selector_spread      how few pods of the same controller (or with the same labels)    0 … 100
                         there are, compared with the other feasible nodes
    extenders' scores, times their weight, times 10

The highest sum wins; a tie is broken at random. kube-scheduler's plugins would score otherwise, but
these rules spread pods as they do.

Source of the extenders' part: prioritizeNodes in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from policies.model import NodeState, Pod

_MOST = 100


def least_allocated(pod: Pod, state: NodeState) -> int:
    """Return the score of a node by the CPU and memory that would be left."""
    has, taken, asks = state.node.allocatable, state.requested, pod.requests
    shares = [
        _percentage_left(has.milli_cpu, taken.milli_cpu + asks.milli_cpu),
        _percentage_left(has.memory, taken.memory + asks.memory),
    ]
    return sum(shares) // len(shares)


def selector_spread(pod: Pod, states: Sequence[NodeState]) -> list[int]:
    """Return the scores of nodes by how few similar pods each of them has."""
    counts = [sum(_is_similar(pod, other) for other in state.pods) for state in states]
    most = max(counts)
    return [_MOST * (most - count) // most if most else _MOST for count in counts]


def best_node(
    pod: Pod,
    states: Sequence[NodeState],
    extender_scores: Iterable[Mapping[str, int]],
    rng: Random,
) -> str:
    """Return the best node; ``extender_scores`` are those of each extender, by node."""
    told = list(extender_scores)
    totals = {
        state.node.name: least_allocated(pod, state)
        + alone
        + sum(scores.get(state.node.name, 0) for scores in told)
        for state, alone in zip(states, selector_spread(pod, states), strict=True)
    }
    top = max(totals.values())
    return rng.choice(sorted(name for name, total in totals.items() if total == top))


def _percentage_left(has: int, used: int) -> int:
    return max(0, has - used) * _MOST // has if has else 0


def _is_similar(pod: Pod, other: Pod) -> bool:
    if pod.namespace != other.namespace or other.terminating:
        return False
    if pod.controller is not None:
        return pod.controller == other.controller
    return pod.labels == other.labels
