"""The search for counterfactuals: all kinds of changes, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from policies.preemption.counterfactuals.changes import (
    additional_node,
    fewer_disruptions,
    never_preempting,
    other_first_criterion,
)
from policies.preemption.counterfactuals.counterfactual import Counterfactual, DecisionInputs
from policies.preemption.counterfactuals.reproduction import (
    MakeEngine,
    ReproducedDecision,
    reproduce,
)
from policies.preemption.counterfactuals.smaller_request import smaller_requests
from policies.preemption.counterfactuals.victim_priority import higher_priority
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft, no_deadline

_KINDS: Final[tuple[Callable[[ReproducedDecision], Iterator[Counterfactual]], ...]] = (
    higher_priority,
    fewer_disruptions,
    additional_node,
    other_first_criterion,
    smaller_requests,
    never_preempting,
)


def find_counterfactuals(
    victim_uid: str,
    inputs: DecisionInputs,
    has_time_left: HasTimeLeft = no_deadline,
    make_engine: MakeEngine = ReferenceEngine,
) -> tuple[Counterfactual, ...]:
    """Return the changes of ``inputs`` that would have spared the pod with a UID.

    The order is that of :class:`ChangeKind`. Each has the smallest amount that spares the victim;
    the modules of the kinds state the exceptions. ``make_engine`` makes the engine that searches;
    the reference engine verifies what it finds. When ``has_time_left`` returns false, what was not
    found is left out. Raise DeadlineExceededError if it does before the decision is reproduced,
    and IrreproducibleDecisionError if the pod is no victim of the decision that follows from
    ``inputs``.
    """
    return tuple(_verified(reproduce(victim_uid, inputs, make_engine, has_time_left)))


def _verified(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield the changes that the reference engine verifies, until the time is over."""
    try:
        for each in chain.from_iterable(kind(reproduced) for kind in _KINDS):
            if reproduced.verifies(each.inputs, each.outcome):
                yield each
    except DeadlineExceededError:
        return
