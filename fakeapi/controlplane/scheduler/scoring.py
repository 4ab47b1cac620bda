"""Which of the nodes that fit is taken: two simple rules, and what extenders say.

    room     how much of CPU and memory would be left, in percent, on average      0 … 100
    spread   how few pods of the same controller (or with the same labels)         0 … 100
             there are, compared with the other nodes that fit
    extenders' scores, times their weight, times 10

The highest sum wins; of equal ones the dice decide. This is not what kube-scheduler's plugins would
score, but it spreads pods as they do.

Source of the extenders' part: prioritizeNodes in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from policies.model import NodeState, Pod

_MOST = 100


def room(pod: Pod, state: NodeState) -> int:
    """Score what would be left of a node's CPU and memory."""
    has, taken, asks = state.node.allocatable, state.requested, pod.requests
    shares = [
        _left(has.milli_cpu, taken.milli_cpu + asks.milli_cpu),
        _left(has.memory, taken.memory + asks.memory),
    ]
    return sum(shares) // len(shares)


def spread(pod: Pod, states: Sequence[NodeState]) -> list[int]:
    """Score how few of a pod's like there are on each of some nodes."""
    counts = [sum(_is_alike(pod, other) for other in state.pods) for state in states]
    most = max(counts)
    return [_MOST * (most - count) // most if most else _MOST for count in counts]


def best_node(
    pod: Pod,
    states: Sequence[NodeState],
    said: Iterable[Mapping[str, int]],
    rng: Random,
) -> str:
    """Return the node to take; ``said`` is what each extender scores, by node."""
    told = list(said)
    totals = {
        state.node.name: room(pod, state)
        + alone
        + sum(scores.get(state.node.name, 0) for scores in told)
        for state, alone in zip(states, spread(pod, states), strict=True)
    }
    top = max(totals.values())
    return rng.choice(sorted(name for name, total in totals.items() if total == top))


def _left(has: int, used: int) -> int:
    return max(0, has - used) * _MOST // has if has else 0


def _is_alike(pod: Pod, other: Pod) -> bool:
    if pod.namespace != other.namespace or other.terminating:
        return False
    if pod.controller is not None:
        return pod.controller == other.controller
    return pod.labels == other.labels
