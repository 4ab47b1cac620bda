"""The scheduling cycle: one attempt for one pod, decided without side effects.

    no nodes at all                        unschedulable, retried after the backoff
    an extender's filter fails             an error; the nomination ends, no preemption
    a node is feasible                     the pod is placed there
    no node is feasible                    unschedulable; preemption is tried

Source: schedulingCycle in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fakeapi.controlplane.scheduler.backlog import ALL_EVENTS, AwaitedEvents
from fakeapi.controlplane.scheduler.calling import Extender, ExtenderError, gather_scores
from fakeapi.controlplane.scheduler.hints import events_that_may_help
from fakeapi.controlplane.scheduler.preempting import DefaultPreemption, PreemptionOutcome
from fakeapi.controlplane.scheduler.scoring import best_node
from fakeapi.controlplane.scheduler.searching import FeasibleNodes, NodeFinder, PodAttempt
from fakeapi.controlplane.scheduler.statuses import Nomination
from policies import wording
from policies.decision import Candidate

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
RETRY_AFTER_BACKOFF: Final[AwaitedEvents] = frozenset()
"""No events are awaited: the pod is retried after its backoff."""


@dataclass(frozen=True, slots=True)
class ScheduledPod:
    """The pod is assigned to a node."""

    node: str


@dataclass(frozen=True, slots=True)
class UnschedulablePod:
    """The pod cannot be scheduled now; ``failure`` is the first sentence of its ``message``.

    Without a ``nomination`` the pod keeps its current one. The victims of a ``chosen`` candidate
    are to be evicted.
    """

    reason: str
    failure: str
    awaited: AwaitedEvents
    nomination: Nomination | None
    message: str = ""
    chosen: Candidate | None = None


class SchedulingCycle:
    """Decides about pods, one after another."""

    def __init__(
        self,
        node_finder: NodeFinder,
        preemption: DefaultPreemption,
        extenders: Sequence[Extender],
        rng: Random,
    ) -> None:
        self._searcher = node_finder
        self._preempting = preemption
        self._scoring = [each for each in extenders if each.config.prioritize_verb]
        self._rng = rng

    async def schedule_pod(self, case: PodAttempt) -> ScheduledPod | UnschedulablePod:
        """Decide where a pod is placed, or why it is not."""
        if not case.snapshot.nodes:
            return _unschedulable(UNSCHEDULABLE, wording.NO_NODES, RETRY_AFTER_BACKOFF)
        try:
            search = await self._searcher.find(case)
        except ExtenderError as error:
            return _unschedulable(SCHEDULER_ERROR, str(error), RETRY_AFTER_BACKOFF)
        if search.names:
            return ScheduledPod(await self._select_node(case, search))
        return await self._try_preemption(case, search)

    async def _select_node(self, case: PodAttempt, search: FeasibleNodes) -> str:
        """Return the best of the feasible nodes; a single node is not scored."""
        if len(search.names) == 1:
            return search.names[0]
        asked = [each for each in self._scoring if each.is_interested(case.pod)]
        nodes = self._searcher.node_documents(search.names)
        said = await gather_scores(asked, case.cached, nodes)
        known = case.snapshot.nodes
        states = [known[name] for name in dict.fromkeys(search.names) if name in known]
        return best_node(case.pod, states, said, self._rng) if states else search.names[0]

    async def _try_preemption(self, case: PodAttempt, search: FeasibleNodes) -> UnschedulablePod:
        rules = case.inputs.profile.rules
        counted = Counter(r for each in search.statuses.values() for r in each.reasons)
        nodes = len(case.snapshot.nodes)
        failure = wording.fit_error(nodes, search.conflict, counted, rules.release)
        awaited = (
            ALL_EVENTS
            if search.filtered_by_extenders
            else events_that_may_help(search.statuses.values())
        )
        args = case.inputs.profile.preemption
        if args is None:
            return _unschedulable(UNSCHEDULABLE, failure, awaited)
        found = await self._preempting.decide(case, search, args)
        message = f"{failure} {found.message}" if found.message else failure
        return UnschedulablePod(
            UNSCHEDULABLE, failure, awaited, _nomination(found), message, found.chosen
        )


def _unschedulable(reason: str, failure: str, awaited: AwaitedEvents) -> UnschedulablePod:
    """Return a refusal without victims; it clears the pod's nomination."""
    return UnschedulablePod(reason, failure, awaited, Nomination(None), failure)


def _nomination(found: PreemptionOutcome) -> Nomination | None:
    if found.chosen is not None:
        return Nomination(found.chosen.node)
    return Nomination(None) if found.clears_nomination else None
