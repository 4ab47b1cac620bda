"""The decisions of a ledger, made again under a policy.

A decision is made from its inputs as the extender made it, and nothing is simulated. So policies
decide about the same states, those that followed from the recorded decisions:

    recorded state ──> policy ──> node, victims, what decided
          │
          └── the next recorded state: it does not depend on the policy

STOCK chooses among the candidates that kube-scheduler offered, by its own criteria. Any other
policy searches where the extender searched, with the release and the plugins of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

import msgspec

from extender.config.preemption_policy import PolicySource, decode_policy
from extender.config.rules_source import RulesSource, build_rules
from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.object_meta import parse_time
from extender.ledger.entry import format_id, time_of_id
from extender.ledger.inputs.call_inputs import CallInputs
from extender.protocol.verb_context import Search, VerbResult
from fakeapi.backtest.ledger.workload import LedgerWorkload, StoredDecision, open_ledger
from fakeapi.backtest.simulation.resource_use import amounts_of, measured
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.statistics import (
    Amounts,
    GroupStatistics,
    RunStatistics,
    SimulatedDecision,
    SimulatedVictim,
    costliest,
)
from policies.engine_selection import build_engine
from policies.kubernetes.releases import UnknownReleaseError
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.pod_cost import SECOND_NS
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.policy import KUBE_SCHEDULER, SchedulerRules

_STOCK: Final = PolicySource(KUBE_SCHEDULER.name)


def decide_again(workload: LedgerWorkload, policy: SimulatedPolicy) -> RunStatistics:
    """Make the decisions of a workload under a policy and return their statistics.

    Raise LedgerError if inputs cannot be read, ConfigError for an invalid policy.
    """
    made, engines = _Decisions(workload), _Engines(policy)
    with open_ledger(workload.location) as ledger:
        for stored in workload.decisions:
            inputs = ledger.inputs(stored)
            try:
                result = engines.decide(inputs, ledger.changed)
                made.add(stored, inputs, result, engines.checkpoints)
            except _MissingInputsError as error:
                raise ledger.error(stored, error) from None
    return made.statistics()


class _MissingInputsError(ValueError):
    """A policy reads what the inputs of decisions do not have, or their own policy is invalid."""


class _Engines:
    """Decides by the engine of a policy with the rules of each call, which seldom change."""

    def __init__(self, policy: SimulatedPolicy) -> None:
        self._policy = policy
        self._recorded: RulesSource | None = None
        self._engine: Engine | None = None
        self.checkpoints: frozenset[str] = frozenset()
        """The keys of annotations from which the policy of the ledger counts lost work."""

    def decide(self, inputs: CallInputs, changed: frozenset[str]) -> VerbResult:
        """Return the decision about inputs, whose snapshot has changed nodes since the last one.

        Raise ConfigError and _MissingInputsError.
        """
        engine = self._engine
        if engine is None or inputs.rules != self._recorded:
            engine = self._engine = self._build(inputs.rules)
            self._recorded = inputs.rules
            engine.follow(inputs.snapshot)
        else:
            engine.follow(inputs.snapshot, changed)
        context = inputs.context(engine)
        if self._policy.source is None:
            context = replace(context, search=Search.OFFERED)
        return inputs.args.decide(context)

    def _build(self, recorded: RulesSource) -> Engine:
        try:
            known, fields = build_rules(recorded), decode_policy(recorded.policy).rules
        except (ConfigError, UnknownReleaseError) as error:
            raise _MissingInputsError(f"its rules: {error}") from None
        self.checkpoints = frozenset(rule.lost_work.checkpoint for rule in fields) - {""}
        source = self._policy.source or _STOCK
        rules = build_rules(msgspec.structs.replace(recorded, policy=source))
        for missing in _missing_inputs(rules, known):
            raise _MissingInputsError(
                f"policy {self._policy.name} reads {missing}, which the ledger does not keep; "
                "expected what the policy of the ledger reads, or less"
            )
        return build_engine(rules)


def _missing_inputs(rules: SchedulerRules, recorded: SchedulerRules) -> Iterator[str]:
    """Yield what rules read and the recorded ones did not: a snapshot has nothing else."""
    yield from (f"annotation {key}" for key in sorted(rules.annotations - recorded.annotations))
    yield from (f"objects of kind {k}" for k in sorted(rules.objects_read - recorded.objects_read))
    if not recorded.reads_time and any(each.allowance_guards for each in rules.policies):
        yield "earlier preemptions"


class _Decisions:
    """Counts the decisions of a workload."""

    def __init__(self, workload: LedgerWorkload) -> None:
        self._workload = workload
        self._statistics = RunStatistics(duration_ns=workload.duration_ns)
        self._decisions: list[SimulatedDecision] = []
        self._digest = sha256()

    def add(
        self,
        stored: StoredDecision,
        inputs: CallInputs,
        result: VerbResult,
        checkpoints: frozenset[str],
    ) -> None:
        """Count a decision."""
        named, pod, of = result.named_candidate, inputs.args.pod, self._statistics
        pods = () if named is None else named.victims.pods
        node = "" if named is None else named.node
        line = f"{format_id(stored.id)} {node} {' '.join(each.uid for each in pods)}\n"
        self._digest.update(line.encode())
        if named is None:
            of.refused += 1
            return
        of.preemptions += 1
        of.violations += named.victims.violations
        victims = tuple(self._victim(each, inputs.snapshot.now_ns, checkpoints) for each in pods)
        decided_by = (
            result.decision.decided_by if isinstance(result.decision, PreemptionDecision) else None
        )
        self._decisions.append(
            SimulatedDecision(
                time_of_id(stored.id) - self._workload.start_ns,
                pod.key,
                pod.namespace,
                pod.priority,
                node,
                victims,
                named.victims.violations,
                decided_by or "",
                stored.attempt,
            )
        )
        if len(self._decisions) > 10_000:
            self._decisions = list(costliest(self._decisions))

    def statistics(self) -> RunStatistics:
        """Return the statistics of all decisions."""
        self._statistics.decisions = costliest(self._decisions)
        self._statistics.digest = self._digest.hexdigest()
        return self._statistics

    def _victim(self, pod: Pod, now_ns: int, checkpoints: frozenset[str]) -> SimulatedVictim:
        class_name = pod.priority_class or f"priority-{pod.priority}"
        name = f"{pod.namespace}/{class_name}"
        group = self._statistics.groups.setdefault(name, GroupStatistics())
        lost = _lost_work(pod, now_ns, checkpoints)
        group.disruptions += 1
        for resource, amount in lost.items():
            for total in (group.done, group.lost):
                total[resource] = total.get(resource, 0) + amount
        return SimulatedVictim(pod.key, pod.namespace, pod.priority, lost)


def _lost_work(pod: Pod, now_ns: int, checkpoints: frozenset[str]) -> Amounts:
    """Return the work of a pod since its start, or since its last checkpoint."""
    if pod.started_ns is None:
        return {}
    saved = (parse_time(pod.annotations.get(each, "")) for each in checkpoints)
    seconds = max(0, now_ns - max(pod.started_ns, *saved, 0)) // SECOND_NS
    return {name: n * seconds for name, n in measured(amounts_of(pod.requests)).items()}
