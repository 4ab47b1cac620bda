"""The statistics of simulated workloads: values that can be merged in any order.

All amounts are integers, so that merged statistics do not depend on the order of merging. Amounts
of work are in resource-seconds: thousandths of a core times seconds for ``cpu``, mebibytes times
seconds for ``memory`` and storage, units times seconds for any other resource.

What holds for each unit, and is checked by :func:`conservation_error`:

- submitted = finished + running + pending, in pods of jobs;
- work that was done = work of finished pods + work that running and waiting pods have kept + work
  that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from heapq import nlargest

from msgspec import Struct, field

from fakeapi.backtest.distribution import Distribution, merge_distributions

MAX_DECISIONS = 200
"""How many decisions are kept of a unit: those that cost the most work."""

Amounts = dict[str, int]
"""Amounts by resource."""


class GroupStatistics(Struct, rename="camel"):
    """The pods of one tenant and priority class.

    A pod of a job keeps its identity when it is disrupted and a replacement goes on with its work.
    ``disruptions`` counts stops by preemption or eviction; ``repeated`` those of pods that had been
    stopped before. ``queueing`` are the times from the creation of each pod or replacement to its
    binding. Work is in resource-seconds: ``done`` is all work that containers did, ``finished`` is
    that of pods that have finished, ``kept`` that of all others, and ``lost`` is what was destroyed
    by disruptions.
    """

    submitted: int = 0
    finished_pods: int = 0
    running: int = 0
    pending: int = 0
    disruptions: int = 0
    repeated: int = 0
    queueing: Distribution = field(default_factory=Distribution)
    done: Amounts = field(default_factory=dict)
    finished: Amounts = field(default_factory=dict)
    kept: Amounts = field(default_factory=dict)
    lost: Amounts = field(default_factory=dict)


class SimulatedVictim(Struct, frozen=True, rename="camel"):
    """A victim: its pod of a job, priority, and the work that it lost in resource-seconds."""

    name: str
    tenant: str
    priority: int
    lost: Amounts = field(default_factory=dict)


class SimulatedDecision(Struct, frozen=True, rename="camel"):
    """A preemption: when, in nanoseconds since the start, for which pod of a job, and its victims.

    ``violations`` are the PodDisruptionBudget violations. ``reason`` is what decided between the
    chosen candidate and the next best, in words; "" if nothing is known. ``attempt`` is which of
    the attempts of the preemptor it was, from 0, if all policies decide about the same attempts.
    """

    at_ns: int
    preemptor: str
    tenant: str
    priority: int
    node: str
    victims: tuple[SimulatedVictim, ...] = ()
    violations: int = 0
    reason: str = ""
    attempt: int | None = None

    def lost(self, resource: str) -> int:
        """Return the work of a resource that all victims lost, in resource-seconds."""
        return sum(victim.lost.get(resource, 0) for victim in self.victims)


class RunStatistics(Struct, rename="camel"):
    """What happened in one simulation, or in several that were merged.

    ``groups`` are by "TENANT/CLASS". ``capacity``, ``allocated`` and ``fragmented`` are
    resource-seconds: of all nodes, of the pods that were bound, and of the free resources on nodes
    that are too small for a pod drawn from the workload. ``preemptions`` are decisions,
    ``violations`` PodDisruptionBudget violations, ``cascades`` preemptions for pods that had been
    disrupted themselves, and ``refused`` attempts of pods that fit nowhere and got no victims.
    ``digest`` identifies the course of events.
    """

    duration_ns: int = 0
    groups: dict[str, GroupStatistics] = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    fragmented: Amounts = field(default_factory=dict)
    preemptions: int = 0
    violations: int = 0
    cascades: int = 0
    refused: int = 0
    decisions: tuple[SimulatedDecision, ...] = ()
    digest: str = ""


def merge_statistics(parts: Iterable[RunStatistics]) -> RunStatistics:
    """Return the statistics of all parts together; their order does not matter."""
    known = list(parts)
    names = sorted({name for part in known for name in part.groups})
    digests = sorted(part.digest for part in known)
    return RunStatistics(
        duration_ns=sum(part.duration_ns for part in known),
        groups={
            name: merge_groups(part.groups[name] for part in known if name in part.groups)
            for name in names
        },
        capacity=_sum(part.capacity for part in known),
        allocated=_sum(part.allocated for part in known),
        fragmented=_sum(part.fragmented for part in known),
        preemptions=sum(part.preemptions for part in known),
        violations=sum(part.violations for part in known),
        cascades=sum(part.cascades for part in known),
        refused=sum(part.refused for part in known),
        decisions=costliest(decision for part in known for decision in part.decisions),
        digest=sha256("\n".join(digests).encode()).hexdigest(),
    )


def merge_groups(parts: Iterable[GroupStatistics]) -> GroupStatistics:
    """Return the statistics of several groups, or of the parts of one, together."""
    known = list(parts)

    def total(count: Callable[[GroupStatistics], int]) -> int:
        return sum(count(part) for part in known)

    return GroupStatistics(
        submitted=total(lambda part: part.submitted),
        finished_pods=total(lambda part: part.finished_pods),
        running=total(lambda part: part.running),
        pending=total(lambda part: part.pending),
        disruptions=total(lambda part: part.disruptions),
        repeated=total(lambda part: part.repeated),
        queueing=merge_distributions(part.queueing for part in known),
        done=_sum(part.done for part in known),
        finished=_sum(part.finished for part in known),
        kept=_sum(part.kept for part in known),
        lost=_sum(part.lost for part in known),
    )


def costliest(decisions: Iterable[SimulatedDecision]) -> tuple[SimulatedDecision, ...]:
    """Return at most MAX_DECISIONS decisions, those with the most victims and lost work first."""
    kept = nlargest(MAX_DECISIONS, decisions, key=_cost)
    return tuple(kept)


def conservation_error(statistics: RunStatistics) -> str:
    """Return which law of conservation is broken, with the numbers; "" if none is."""
    for name, group in statistics.groups.items():
        found = group.finished_pods + group.running + group.pending
        if group.submitted != found:
            return f"{name}: {group.submitted} pods were submitted, and {found} are accounted for"
        for resource, done in group.done.items():
            parts = (group.finished, group.kept, group.lost)
            known = sum(part.get(resource, 0) for part in parts)
            if known != done:
                return f"{name}: {done} {resource} seconds were done, {known} are accounted for"
    return ""


def _cost(decision: SimulatedDecision) -> tuple[int, int, int, int, str]:
    extended = {r for v in decision.victims for r in v.lost if r not in ("cpu", "memory")}
    devices = sum(decision.lost(resource) for resource in sorted(extended))
    preemptor = f"{decision.tenant}/{decision.preemptor}"
    return devices, decision.lost("cpu"), len(decision.victims), decision.at_ns, preemptor


def _sum(parts: Iterable[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return dict(sorted(total.items()))
