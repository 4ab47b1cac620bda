"""The entry of an answer: what a decision, its snapshot and its context say, copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from extender.ledger.entry import LedgerCandidate, LedgerEntry, LedgerPod, time_of_id
from extender.observability.decision_log import ReasonCounts
from extender.protocol.verb_context import AnswerContext, VerbResult
from extender.terminal.log_limits import shortened, shortened_list
from policies.kubernetes.snapshot import Pod, Resources, Snapshot
from policies.preemption.costs.pod_cost import SECOND_NS
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.explanation import violated_budgets_of
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import SchedulerRules

_MAX_REASONS: Final = 20
_MAX_PODS: Final = 200
_MAX_NAME: Final = 253
"""Characters of names in Kubernetes: callers can send longer ones of owners."""

_MAX_RESOURCES: Final = 50


@dataclass(frozen=True, slots=True)
class EntryBuilder:
    """Builds entries.

    ``team_label`` is the key of the label whose value is the team of a pod, "" for none.
    ``most_candidates`` are kept of a decision, the chosen one first. The entries are ``observed``
    or not.
    """

    team_label: str = ""
    most_candidates: int = 4
    observed: bool = False

    def entry(
        self,
        entry_id: int,
        digest: str,
        answer: VerbResult,
        snapshot: Snapshot,
        rules: SchedulerRules,
        answered: AnswerContext,
        reasons: ReasonCounts,
    ) -> LedgerEntry:
        """Return the entry of an answer; ``reasons`` are those of the nodes that it rejects."""
        decision, now_ns = answer.decision, time_of_id(entry_id)
        rules = rules.for_preemptor(decision.pod)
        entry = LedgerEntry(
            entry_id,
            answered.verb,
            self._pod(decision.pod, now_ns),
            rejected={shortened(str(each)): n for each, n in reasons.most_common(_MAX_REASONS)},
            notes=(*_left_out(answer.named_candidate), *shortened_list(answer.notes)),
            policy=rules.policy.name,
            release=rules.release.name,
            request_id=answered.request_id,
            generation=answered.generation,
            pods_version=answered.pods_version,
            digest=digest,
            took_microseconds=round(answered.seconds * 1e6),
            observed=self.observed,
        )
        if isinstance(decision, FilterDecision):
            return msgspec.structs.replace(entry, fits=len(decision.feasible))
        kept = tuple(
            islice(self._kept(answer, decision, snapshot, rules, now_ns), self.most_candidates)
        )
        compared = () if decision.runner_up is None else decision.runner_up.values
        return msgspec.structs.replace(
            entry,
            node=None if answer.named_candidate is None else answer.named_candidate.node,
            decided_by=decision.decided_by,
            kept=kept,
            criteria=tuple(name for name, _, _ in compared),
            candidates=len(decision.candidates),
            untried=decision.untried,
            protected=answer.guards.protected,
            refused_attempt=answer.guards.refused_attempt,
            refused_nodes=answer.guards.refused_nodes,
            search="" if decision.search is None else str(decision.search),
            message=shortened(decision.message),
        )

    def fallback(
        self, entry_id: int, digest: str, pod: Pod, verb: str, request_id: str, fallback: str
    ) -> LedgerEntry:
        """Return the entry of a fallback answer."""
        found = self._pod(pod, 0)
        return LedgerEntry(
            entry_id, verb, found, fallback=fallback, request_id=request_id, digest=digest
        )

    def _kept(
        self,
        answer: VerbResult,
        decision: PreemptionDecision,
        snapshot: Snapshot,
        rules: SchedulerRules,
        now_ns: int,
    ) -> Iterator[LedgerCandidate]:
        """Yield the chosen candidate, the runner-up, and the others."""
        named, second = answer.named_candidate, decision.runner_up
        values = () if second is None else second.values
        best = (named, None if second is None else second.candidate)
        compared = [each for each in best if each is not None]
        violated = violated_budgets_of(compared, snapshot, rules)
        seen = set[str]()
        if named is not None:
            seen.add(named.node)
            yield msgspec.structs.replace(
                ledger_candidate(named, snapshot, violated),
                victims=tuple(
                    self._pod(pod, now_ns) for pod in islice(named.victims.pods, _MAX_PODS)
                ),
                criteria=tuple(each[1] for each in values),
            )
        if second is not None and second.candidate.node not in seen:
            seen.add(second.candidate.node)
            found = ledger_candidate(second.candidate, snapshot, violated)
            yield msgspec.structs.replace(found, criteria=tuple(each[2] for each in values))
        for node in islice(decision.candidates, self.most_candidates + len(seen)):
            if node not in seen:
                yield _other(decision.candidates[node])

    def _pod(self, pod: Pod, now_ns: int) -> LedgerPod:
        ran_ns = 0 if pod.started_ns is None else max(0, now_ns - pod.started_ns)
        return LedgerPod(
            _name(pod.namespace),
            _name(pod.name),
            _name(pod.uid),
            pod.priority,
            _name(pod.priority_class),
            _name(pod.labels.get(self.team_label, "")),
            "" if pod.owner is None else _name(f"{pod.owner.kind}/{pod.owner.name}"),
            _by_name(pod.requests),
            ran_ns // SECOND_NS,
        )


def ledger_candidate(
    candidate: Candidate, snapshot: Snapshot, violated: Mapping[str, tuple[str, ...]]
) -> LedgerCandidate:
    """Return what is kept of the chosen candidate, and of the runner-up.

    ``violated`` has the violated budgets by node. Of victims, only the name, the priority and the
    requests are kept.
    """
    state = snapshot.nodes[candidate.node]
    return LedgerCandidate(
        candidate.node,
        tuple(_brief(pod) for pod in islice(candidate.victims.pods, _MAX_PODS)),
        tuple(_brief(pod) for pod in islice(candidate.spared, _MAX_PODS)),
        candidate.victims.violations,
        violated.get(candidate.node, ()),
        allocatable=_by_name(state.node.allocatable),
        requested=_by_name(state.requested),
    )


def _other(candidate: Candidate) -> LedgerCandidate:
    """Return what is kept of a candidate that is neither the chosen one nor the runner-up."""
    victims = islice(candidate.victims.pods, _MAX_PODS)
    return LedgerCandidate(
        candidate.node,
        tuple(LedgerPod(pod.namespace, pod.name, "", pod.priority) for pod in victims),
        num_pdb_violations=candidate.victims.violations,
    )


def _brief(pod: Pod) -> LedgerPod:
    """Return what is kept of a pod that the decision does not evict."""
    return LedgerPod(pod.namespace, pod.name, "", pod.priority, requests=_by_name(pod.requests))


def _name(text: str) -> str:
    """Return a name as a ledger keeps it: not too long, and without NUL, which PostgreSQL lacks."""
    return shortened(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), _MAX_NAME)


def _left_out(named: Candidate | None) -> Iterator[str]:
    """Yield a note about the victims that are not kept, if there are any."""
    if named is not None and len(named.victims.pods) > _MAX_PODS:
        yield f"{len(named.victims.pods) - _MAX_PODS} more victims are not kept"


def _by_name(amounts: Resources) -> Mapping[str, int]:
    """Return the amounts that are not 0 by the name of the resource."""
    found = {
        "cpu": amounts.milli_cpu,
        "memory": amounts.memory,
        "ephemeral-storage": amounts.ephemeral_storage,
        **amounts.scalars,
    }
    requested = ((_name(name), amount) for name, amount in found.items() if amount)
    return dict(islice(requested, _MAX_RESOURCES))
