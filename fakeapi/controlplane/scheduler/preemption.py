"""DefaultPreemption: eligibility, candidates, selection and eviction for a pod that fits nowhere.

    eligibility              if not eligible, the pod keeps its nomination
    dry run on nodes that    no candidates: the nomination is cleared, unless a node had an error
      eviction may help
    extenders                one after another, each on the result of the previous one
    selection                by kube-scheduler's criteria; at random between equal candidates
    eviction                 lower nominations are cleared, victims are marked and deleted

A node that the in-tree filters accept without victims (an extender rejected it) is an error of the
dry run. Since 1.38 it is sent to extenders with an empty list of victims, and is a candidate if it
is returned with some.

Up to 1.32 kube-scheduler deletes all victims concurrently, then clears nominations; the first error
ends the preemption. Since 1.33 (SchedulerAsyncPreemption) this runs concurrently with scheduling:
nominations first, then all victims but the last concurrently, then the last; the preemptor is not
scheduled meanwhile. Victims that are already being deleted are skipped, and a missing victim is no
error.

Source: pkg/scheduler/framework/preemption/{preemption,executor}.go.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from msgspec import structs

from extender.config.plugin_args import DefaultPreemptionArgs
from extender.kube.controller_runtime.event_recorder import EventRecorder
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.scheduler.cache import CachedPod, PodCache
from fakeapi.controlplane.scheduler.extender import Extender, ExtenderError
from fakeapi.controlplane.scheduler.feasible_nodes import (
    FeasibleNodes,
    PodAttempt,
    candidates_to_find,
    rotated,
    shortlist,
)
from fakeapi.controlplane.scheduler.status_writer import SchedulerStatusWriter, path_of, reference
from policies.kubernetes.criteria import Order
from policies.kubernetes.releases import RELEASES, Release
from policies.kubernetes.snapshot import Pod
from policies.preemption import fit_error
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.filtering import is_recorded
from policies.preemption.filtering.status import Code, Rejection, group_by_rejection
from policies.preemption.reference_engine import nominated_status
from policies.preemption.victim_units import victim_units
from policies.preemption.victims.victim_selection import ineligibility

_PREFIX: Final = "preemption: "
_NO_CANDIDATE: Final = "no candidate node for preemption"


@dataclass(frozen=True, slots=True)
class PreemptionOutcome:
    """The decision, and the message for the pod's Event.

    Without a ``chosen`` candidate there are no victims. ``has_no_candidate`` is set if the pod fits
    nowhere even without all pods of lower priority; then its nomination ends.
    """

    message: str
    chosen: Candidate | None = None
    has_no_candidate: bool = False


@dataclass(frozen=True, slots=True)
class _DryRun:
    """The candidates before extenders are called, and why other nodes are none."""

    candidates: Sequence[Candidate] = ()
    refusals: Mapping[str, Rejection] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        """The errors of nodes on which no victim is needed."""
        refusals = self.refusals.values()
        return [str(r) for r in refusals if r.reasons[0].code is Code.NO_VICTIM_NEEDED]


class DefaultPreemption:
    """Decides about preemptions."""

    def __init__(self, extenders: Sequence[Extender], pods: PodCache, rng: Random) -> None:
        self._extenders = [each for each in extenders if each.config.preempt_verb]
        self._pods = pods
        self._rng = rng

    async def decide(
        self, case: PodAttempt, search: FeasibleNodes, args: DefaultPreemptionArgs
    ) -> PreemptionOutcome:
        """Decide for a pod that fits nowhere; its latest version is used."""
        latest = self._pods.pending(case.cached.key)
        if latest is None:
            return PreemptionOutcome(f'{_PREFIX}pod "{case.cached.name}" not found')
        case = replace(case, cached=latest[0], pod=latest[1])
        pod, snapshot, rules = case.pod, case.snapshot, case.inputs.profile.rules
        first = fit_error.deallocation_prefix(search.filtering, snapshot, rules.release)
        units = victim_units(snapshot, rules.release)
        reason = ineligibility(pod, units, nominated_status(pod, search.statuses, rules))
        if reason is not None:
            return PreemptionOutcome(fit_error.not_eligible(reason, first))
        dry_run = self._dry_run(case, search, args)
        if not dry_run.candidates:
            counted = Counter(r for each in dry_run.refusals.values() for r in each.reasons)
            message = fit_error.no_candidates(
                len(snapshot.nodes), len(dry_run.refusals), counted, dry_run.errors, first
            )
            return PreemptionOutcome(message, has_no_candidate=not dry_run.errors)
        try:
            candidates = await self._call_extenders(case, dry_run.candidates)
        except ExtenderError as error:
            return PreemptionOutcome(f"{first}{_PREFIX}{error}")
        order = rules.policy.order_of_candidates(pod, snapshot)
        chosen = pick_candidate(candidates, order, self._rng)
        if chosen is None:
            return PreemptionOutcome(f"{first}{_PREFIX}{_NO_CANDIDATE}")
        return PreemptionOutcome(fit_error.candidate_found(chosen, rules.release), chosen)

    def _dry_run(
        self, case: PodAttempt, search: FeasibleNodes, args: DefaultPreemptionArgs
    ) -> _DryRun:
        potential = sorted(
            name
            for rejection, names in group_by_rejection(search.statuses)
            if rejection.resolvable
            for name in names
            if name in case.snapshot.nodes
        )
        if not potential:
            return _DryRun()
        # Eligibility has been decided, extenders' statuses included.
        pod = structs.replace(case.pod, nominated_node=None)
        decision = case.inputs.engine.preempt(pod, case.snapshot, potential, potential)
        candidates = dict(decision.candidates)
        refusals = {name: decision.rejected[name] for name in potential if name not in candidates}
        if self._offers_victimless_nodes(case):
            for name, node_status in tuple(refusals.items()):
                if node_status.reasons[0].code is Code.NO_VICTIM_NEEDED:
                    candidates[name] = Candidate(name, VictimSet(()))
                    del refusals[name]
        order = rotated(potential, self._rng.randrange(len(potential)))
        enough = candidates_to_find(len(potential), args)
        return _DryRun(shortlist(order, candidates, enough), refusals)

    def _offers_victimless_nodes(self, case: PodAttempt) -> bool:
        """Return whether nodes without victims are sent to extenders."""
        release = case.inputs.profile.rules.release
        return release.victimless_candidates and any(
            each.is_interested(case.pod) for each in self._extenders
        )

    async def _call_extenders(
        self, case: PodAttempt, candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """Call the extenders with the candidates. Raises ExtenderError."""
        offered: Mapping[str, VictimSet] = {each.node: each.victims for each in candidates}
        for extender in self._extenders:
            if not offered:
                break
            if not extender.is_interested(case.pod):
                continue
            whole = self._victim_documents(offered)
            arguments = case.cached, case.pod, offered, case.snapshot, whole
            try:
                offered = await extender.preempt(*arguments)
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise
        return [Candidate(node, victims) for node, victims in offered.items() if victims.pods]

    def _victim_documents(self, candidates: Mapping[str, VictimSet]) -> dict[str, bytes]:
        pods = (pod for victims in candidates.values() for pod in victims.pods)
        return {pod.uid: self._pods.document(pod) for pod in pods}


def pick_candidate(
    candidates: Sequence[Candidate], order: Order[Candidate], rng: Random
) -> Candidate | None:
    """Return the best candidate; of those that no criterion separates, a random one."""
    ranked = order.sort(candidates)
    if not ranked:
        return None
    best, _ = order.key(ranked[0])
    return rng.choice([each for each in ranked if order.key(each)[0] == best])


REQUEST_ERRORS: Final = (ApiError, MalformedError, TransportError)
"""Errors of a write to the API server."""

_ASYNCHRONOUS_SINCE: Final = "1.33"
_NOT_FOUND: Final = 404


def is_asynchronous(release: Release) -> bool:
    """Return whether a release executes preemptions concurrently with scheduling."""
    order = list(RELEASES)
    return order.index(release.name) >= order.index(_ASYNCHRONOUS_SINCE)


@dataclass(frozen=True, slots=True)
class Preemption:
    """A preemption to execute: its preemptor as messages name it, the node, and the victims.

    ``kind`` is ``pod`` or ``podgroup``. ``outranked`` are pods that lose their nomination.
    """

    scheduler: str
    kind: str
    uid: str
    node: str
    victims: tuple[Pod, ...]
    outranked: tuple[Pod, ...] = ()


def preemption_for_pod(case: PodAttempt, chosen: Candidate) -> Preemption:
    """Return the preemption for a pod; less important pods lose their nomination to the node."""
    names = case.inputs.profile.rules.scheduler_names
    outranked = tuple(
        pod
        for pod in case.snapshot.nodes[chosen.node].nominated
        if pod.priority < case.pod.priority and is_recorded(pod, case.pod, names)
    )
    scheduler, uid = case.cached.scheduler, case.cached.uid
    return Preemption(scheduler, "pod", uid, chosen.node, chosen.victims.pods, outranked)


class PreemptionExecutor:
    """Executes preemptions; ``displaced`` is called for each pod that lost its nomination."""

    def __init__(
        self,
        client: Client,
        pods: PodCache,
        writer: SchedulerStatusWriter,
        recorder: EventRecorder,
        displaced: Callable[[CachedPod], None],
    ) -> None:
        self._client = client
        self._pods = pods
        self._writer = writer
        self._recorder = recorder
        self._displaced = displaced

    async def evict(self, preemption: Preemption) -> None:
        """Evict the victims, then clear nominations. Raises the errors in REQUEST_ERRORS."""
        await self._evict_all(preemption, self.victims(preemption))
        await self._clear_nominations(preemption)

    async def evict_asynchronously(
        self, preemption: Preemption, victims: Sequence[CachedPod]
    ) -> None:
        """Clear nominations, then evict the victims, the last one separately. Raises the same."""
        await self._clear_nominations(preemption)
        *first, last = victims
        await self._evict_all(preemption, first)
        await self._evict_victim(preemption, last)

    def victims(self, preemption: Preemption) -> list[CachedPod]:
        """Return the victims that are not being deleted."""
        running = (pod for pod in preemption.victims if not pod.terminating)
        return list(self._cached_pods(running))

    async def _evict_all(self, preemption: Preemption, victims: Sequence[CachedPod]) -> None:
        going = (self._evict_victim(preemption, victim) for victim in victims)
        for outcome in await asyncio.gather(*going, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _evict_victim(self, preemption: Preemption, victim: CachedPod) -> None:
        kind = preemption.kind
        purpose = f"preempting to accommodate a higher priority {kind}"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{preemption.scheduler}: {purpose}",
        }
        try:
            await self._writer.set_condition(victim, condition)
            await self._client.delete(path_of(victim))
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return
            raise
        message = f"Preempted by {kind} {preemption.uid} on node {preemption.node}"
        self._recorder.normal(reference(victim), "Preempted", message)

    async def _clear_nominations(self, preemption: Preemption) -> None:
        """Clear the nominations of outranked pods; errors are ignored."""
        for pod in self._cached_pods(preemption.outranked):
            try:
                await self._writer.clear_nomination(pod)
            except REQUEST_ERRORS:
                continue
            self._pods.nominate(pod, None)
            self._displaced(pod)

    def _cached_pods(self, pods: Iterable[Pod]) -> Iterable[CachedPod]:
        for pod in pods:
            cached_pod = self._pods.cached.get(pod.key)
            if cached_pod is not None and cached_pod.uid == pod.uid:
                yield cached_pod
