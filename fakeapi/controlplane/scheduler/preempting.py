"""DefaultPreemption: eligibility, candidates and selection for a pod that fits nowhere.

    eligibility              if not eligible, the pod keeps its nomination
    dry run on nodes that    no candidates: the nomination is cleared, unless a node had an error
      eviction may help
    extenders                one after another, each on the result of the previous one
    selection                by kube-scheduler's criteria; at random between equal candidates

A node that the in-tree filters accept without victims (an extender rejected it) is an error of the
dry run. Since 1.38 it is sent to extenders with an empty list of victims, and is a candidate if it
is returned with some.

Source: pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from extender.plugin_config import DefaultPreemptionArgs
from fakeapi.controlplane.scheduler.calling import Extender, ExtenderError
from fakeapi.controlplane.scheduler.sampling import candidates_to_find, rotated, shortlist
from fakeapi.controlplane.scheduler.searching import FeasibleNodes, PodAttempt
from fakeapi.controlplane.scheduler.sightings import PodCache
from policies import wording
from policies.decision import Candidate, Code, Rejection, VictimSet
from policies.order import Order
from policies.preemption import ineligibility
from policies.reference import nominated_status

_PREFIX: Final = "preemption: "
_NO_CANDIDATE: Final = "no candidate node for preemption"


@dataclass(frozen=True, slots=True)
class PreemptionOutcome:
    """The decision, and the message for the pod's Event.

    Without a ``chosen`` candidate there are no victims; ``clears`` is set if the nomination ends.
    """

    message: str
    chosen: Candidate | None = None
    clears_nomination: bool = False


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
        first = wording.deallocation_prefix(search.filtering, snapshot, rules.release)
        reason = ineligibility(pod, snapshot, nominated_status(pod, search.statuses, rules))
        if reason is not None:
            return PreemptionOutcome(wording.not_eligible(reason, first))
        tried = self._dry_run(case, search, args)
        if not tried.candidates:
            counted = Counter(r for each in tried.refusals.values() for r in each.reasons)
            told = len(snapshot.nodes), len(tried.refusals), counted, tried.errors, first
            return PreemptionOutcome(
                wording.no_candidates(*told), clears_nomination=not tried.errors
            )
        try:
            candidates = await self._call_extenders(case, tried.candidates)
        except ExtenderError as error:
            return PreemptionOutcome(f"{first}{_PREFIX}{error}")
        chosen = pick_candidate(candidates, rules.policy.candidates, self._rng)
        if chosen is None:
            return PreemptionOutcome(f"{first}{_PREFIX}{_NO_CANDIDATE}")
        return PreemptionOutcome(wording.candidate_found(chosen, rules.release), chosen)

    def _dry_run(
        self, case: PodAttempt, search: FeasibleNodes, args: DefaultPreemptionArgs
    ) -> _DryRun:
        potential = [
            name
            for name in sorted(case.snapshot.nodes)
            if name in search.statuses and search.statuses[name].resolvable
        ]
        if not potential:
            return _DryRun()
        # Eligibility has been decided, extenders' statuses included.
        pod = replace(case.pod, nominated_node=None)
        decision = case.inputs.engine.preempt(pod, case.snapshot, potential, potential)
        candidates = dict(decision.candidates)
        refusals = {name: decision.rejected[name] for name in potential if name not in candidates}
        if self._offers_victimless_nodes(case):
            for name, why in tuple(refusals.items()):
                if why.reasons[0].code is Code.NO_VICTIM_NEEDED:
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
            asked = case.cached, case.pod, offered, case.snapshot, whole
            try:
                offered = await extender.preempt(*asked)
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise
        return [Candidate(node, victims) for node, victims in offered.items() if victims.pods]

    def _victim_documents(self, candidates: Mapping[str, VictimSet]) -> dict[str, bytes]:
        """Return the victims' JSON, by UID."""
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
