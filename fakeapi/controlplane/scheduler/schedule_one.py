"""The scheduling cycle: one attempt for one pod, decided without side effects; and binding.

    no nodes at all                        unschedulable, retried after the backoff
    an extender's filter fails             an error; the nomination ends, no preemption
    a node is feasible                     the pod is placed there
    no node is feasible                    unschedulable; preemption is tried

Feasible nodes are scored by two simple rules instead of kube-scheduler's plugins, which spread pods
in a similar way:

    least_allocated      the percentage of CPU and memory that would be left, on average  0 … 100
    selector_spread      how few pods of the same controller (or with the same labels)    0 … 100
                         there are, compared with the other feasible nodes
    extenders' scores, times their weight, times 10

The highest sum wins; a tie is broken at random. The pod is bound by the extender that binds, if
there is one, or by the API.

Source: schedulingCycle, prioritizeNodes, bind and extendersBinding in
pkg/scheduler/schedule_one.go, plugins/defaultbinder.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import orjson

from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.scheduler.cache import CachedPod
from fakeapi.controlplane.scheduler.configuration import Retries
from fakeapi.controlplane.scheduler.departure_hint import departure_hint
from fakeapi.controlplane.scheduler.extender import Extender, ExtenderError, gather_scores
from fakeapi.controlplane.scheduler.feasible_nodes import FeasibleNodes, NodeFinder, PodAttempt
from fakeapi.controlplane.scheduler.preemption import DefaultPreemption, PreemptionOutcome
from fakeapi.controlplane.scheduler.scheduling_queue import (
    ALL_EVENTS,
    AwaitedEvents,
    NodeHint,
    events_that_may_help,
)
from fakeapi.controlplane.scheduler.status_writer import Nomination, path_of
from policies.kubernetes.snapshot import NodeState, Pod
from policies.preemption import fit_error
from policies.preemption.decision import Candidate
from policies.preemption.filtering.status import Reason, group_by_rejection

_MOST = 100


def least_allocated(pod: Pod, states: Iterable[NodeState]) -> Iterator[int]:
    """Yield the scores of nodes by the CPU and memory that would be left."""
    asked_cpu, asked_memory = pod.requests.milli_cpu, pod.requests.memory
    for state in states:
        has, taken = state.node.allocatable, state.requested
        cpu, memory = has.milli_cpu, has.memory
        free_cpu = cpu - taken.milli_cpu - asked_cpu
        free_memory = memory - taken.memory - asked_memory
        score = free_cpu * _MOST // cpu if free_cpu > 0 else 0
        yield (score + (free_memory * _MOST // memory if free_memory > 0 else 0)) // 2


def selector_spread(pod: Pod, states: Sequence[NodeState]) -> list[int]:
    """Return the scores of nodes by how few similar pods each of them has."""
    similar = operator.attrgetter("labels" if pod.controller is None else "controller")
    key = similar(pod)
    counts = [
        len([each for each in state.pods if similar(each) == key and _counts(pod, each)])
        if state.pods
        else 0
        for state in states
    ]
    most = max(counts)
    return [_MOST * (most - count) // most if most else _MOST for count in counts]


def best_node(
    pod: Pod, states: Sequence[NodeState], extender_scores: Iterable[Mapping[str, int]], rng: Random
) -> str:
    """Return the best node; ``extender_scores`` are those of each extender, by node."""
    totals = {
        state.node.name: left + alone
        for state, left, alone in zip(
            states, least_allocated(pod, states), selector_spread(pod, states), strict=True
        )
    }
    for scores in extender_scores:
        for name in totals:
            totals[name] += scores.get(name, 0)
    top = max(totals.values())
    return rng.choice(sorted(name for name, total in totals.items() if total == top))


def _counts(pod: Pod, other: Pod) -> bool:
    return pod.namespace == other.namespace and not other.terminating


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
    are to be evicted. With a ``hint``, an attempt after other events of nodes' pods would fail.
    """

    reason: str
    failure: str
    awaited: AwaitedEvents
    nomination: Nomination | None
    message: str = ""
    chosen: Candidate | None = None
    hint: NodeHint | None = None


class SchedulingCycle:
    """Decides about pods, one after another."""

    def __init__(
        self,
        node_finder: NodeFinder,
        preemption: DefaultPreemption,
        extenders: Sequence[Extender],
        rng: Random,
        retries: Retries,
    ) -> None:
        self._retries = retries
        self._searcher = node_finder
        self._preempting = preemption
        self._scoring = [each for each in extenders if each.config.prioritize_verb]
        self._rng = rng

    async def schedule_pod(self, case: PodAttempt) -> ScheduledPod | UnschedulablePod:
        """Decide where a pod is placed, or why it is not."""
        found = await self.find_node(case)
        if not isinstance(found, FeasibleNodes):
            return found
        return await self._try_preemption(case, found)

    async def find_node(self, case: PodAttempt) -> ScheduledPod | UnschedulablePod | FeasibleNodes:
        """Decide where a pod is placed; return the refusals of all nodes if none is feasible."""
        if not case.snapshot.nodes:
            return _unschedulable(UNSCHEDULABLE, fit_error.NO_NODES, RETRY_AFTER_BACKOFF)
        try:
            search = await self._searcher.find(case)
        except ExtenderError as error:
            return _unschedulable(SCHEDULER_ERROR, str(error), RETRY_AFTER_BACKOFF)
        if search.names:
            return ScheduledPod(await self._select_node(case, search))
        return search

    async def _select_node(self, case: PodAttempt, search: FeasibleNodes) -> str:
        """Return the best of the feasible nodes; a single node is not scored."""
        if len(search.names) == 1:
            return search.names[0]
        extenders = [each for each in self._scoring if each.is_interested(case.pod)]
        nodes = self._searcher.node_documents(search.names) if extenders else {}
        scores = await gather_scores(extenders, case.cached, nodes)
        nodes_by_name = dict(case.snapshot.nodes.items())
        states = [
            nodes_by_name[name] for name in dict.fromkeys(search.names) if name in nodes_by_name
        ]
        return best_node(case.pod, states, scores, self._rng) if states else search.names[0]

    async def _try_preemption(self, case: PodAttempt, search: FeasibleNodes) -> UnschedulablePod:
        refused = no_fit(case, search)
        args = case.inputs.profile.preemption
        if args is None:
            return replace(refused, nomination=Nomination(None))
        found = await self._preempting.decide(case, search, args)
        message = f"{refused.failure} {found.message}" if found.message else refused.failure
        nomination, chosen = _nomination(found), found.chosen
        refused = replace(refused, nomination=nomination, message=message, chosen=chosen)
        if self._retries is Retries.AFTER_EACH_HINT or not found.has_no_candidate:
            return refused
        rules = case.inputs.profile.rules
        hint = departure_hint(case.pod, case.snapshot, rules, search.statuses)
        return replace(refused, hint=hint)


def no_fit(case: PodAttempt, search: FeasibleNodes) -> UnschedulablePod:
    """Return the refusal of a pod that fits nowhere, before preemption; it keeps its nomination."""
    release = case.inputs.profile.rules.release
    groups = [*group_by_rejection(search.statuses)]
    counted: Counter[Reason] = Counter()
    for rejection, names in groups:
        for reason in rejection.reasons:
            counted[reason] += len(names)
    failure = fit_error.fit_error(len(case.snapshot.nodes), search.conflict, counted, release)
    awaited = (
        ALL_EVENTS
        if search.filtered_by_extenders
        else events_that_may_help(rejection for rejection, _ in groups)
    )
    return UnschedulablePod(UNSCHEDULABLE, failure, awaited, None, failure)


def _unschedulable(reason: str, failure: str, awaited: AwaitedEvents) -> UnschedulablePod:
    """Return a refusal without victims; it clears the pod's nomination."""
    return UnschedulablePod(reason, failure, awaited, Nomination(None), failure)


def _nomination(found: PreemptionOutcome) -> Nomination | None:
    if found.chosen is not None:
        return Nomination(found.chosen.node)
    return Nomination(None) if found.has_no_candidate else None


class BindingError(Exception):
    """A pod could not be bound; the text is kube-scheduler's."""


class Binder:
    """Binds pods."""

    def __init__(self, client: Client, extenders: Sequence[Extender]) -> None:
        self._client = client
        self._extenders = [each for each in extenders if each.config.bind_verb]

    async def bind(self, cached_pod: CachedPod, pod: Pod, node: str) -> None:
        """Bind a pod to a node. Raises BindingError."""
        for extender in self._extenders:
            if not extender.is_interested(pod):
                continue
            try:
                await extender.bind(cached_pod, node)
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise BindingError(str(error)) from None
            return
        await self._bind(cached_pod, node)

    async def _bind(self, pod: CachedPod, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        path = path_of(pod).subresource("binding")
        try:
            await self._client.create(path, orjson.dumps(binding), bytes)
        except ApiError as error:
            raise BindingError(_failed(error.message)) from None
        except (MalformedError, TransportError) as error:
            raise BindingError(_failed(str(error))) from None


def _failed(reason: str) -> str:
    return f'running Bind plugin "DefaultBinder": {reason}'
