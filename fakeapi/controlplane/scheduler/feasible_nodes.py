"""Find the feasible nodes of a pod: the in-tree filters, then extenders' filters in order.

For a nominated pod its node is tried first, alone, and taken if it is feasible. Otherwise nodes are
examined from where the last search stopped, until enough are feasible. So an extender is sent only
a part of a large cluster. Each extender is sent the nodes that the previous one has left, and may
reject them with reasons. Nodes that were not examined, and those that an extender dropped without a
reason, have no status.

Preemption examines a sample of nodes in the same way: from an offset, and around.

Sources: findNodesThatFitPod and numFeasibleNodesToFind in pkg/scheduler/schedule_one.go;
GetOffsetAndNumCandidates in plugins/defaultpreemption and DryRunPreemption in framework/preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from extender.config.plugin_args import DefaultPreemptionArgs
from fakeapi.controlplane.scheduler.cache import CachedPod, NodeCache
from fakeapi.controlplane.scheduler.configuration import Profile
from fakeapi.controlplane.scheduler.extender import Extender, ExtenderError
from policies.kubernetes.shared_mapping import SharedMapping
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.engine import Engine
from policies.preemption.filtering.status import Code, FilterDecision, Rejection

LEAST_NODES: Final = 100

_LEAST_PERCENTAGE: Final = 5
_PREEMPTION_PERCENTAGE: Final = 10
_PREEMPTION_ABSOLUTE: Final = 100

T = TypeVar("T")


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; a ``percentage`` of 0 depends on their number."""
    if nodes < LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, LEAST_NODES)


def candidates_to_find(potential: int, args: DefaultPreemptionArgs) -> int:
    """Return how many candidates are enough among potential nodes."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    share = _PREEMPTION_PERCENTAGE if percentage is None else percentage
    least = _PREEMPTION_ABSOLUTE if absolute is None else absolute
    return min(max(potential * share // 100, least), potential)


def rotated(items: Sequence[T], offset: int) -> list[T]:
    """Return the items from an offset on, wrapping around."""
    return [*items[offset:], *items[:offset]]


def first_feasible(
    nodes: Sequence[str], feasible: Collection[str], enough: int
) -> tuple[list[str], int]:
    """Return the first ``enough`` feasible nodes, and how many were examined."""
    found = [*islice(filter(frozenset(feasible).__contains__, nodes), enough)]
    return found, nodes.index(found[-1]) + 1 if len(found) == enough else len(nodes)


def shortlist(
    nodes: Iterable[str], candidates: Mapping[str, Candidate], enough: int
) -> list[Candidate]:
    """Return the candidates that a dry run over ``nodes`` finds before it has enough.

    It stops with at least one candidate without PDB violations and ``enough`` candidates in all. Of
    those without violations and those with, ``enough`` of each are kept.
    """
    harmless: list[Candidate] = []
    breaking: list[Candidate] = []
    for name in nodes:
        if harmless and len(harmless) + len(breaking) >= enough:
            break
        candidate = candidates.get(name)
        if candidate is None:
            continue
        kept = breaking if candidate.victims.violations else harmless
        if len(kept) < enough:
            kept.append(candidate)
    return [*harmless, *breaking]


@dataclass(frozen=True, slots=True)
class SchedulingInputs:
    """A profile and the engine that follows its rules."""

    profile: Profile
    engine: Engine


@dataclass(frozen=True, slots=True)
class PodAttempt:
    """A pod that is being scheduled: as JSON, as it is cached, and the snapshot that is used."""

    cached: CachedPod
    pod: Pod
    inputs: SchedulingInputs
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class FeasibleNodes:
    """The feasible nodes, and the statuses of others; ``filtering`` is the in-tree result."""

    filtering: FilterDecision
    names: tuple[str, ...]
    statuses: Mapping[str, Rejection]
    filtered_by_extenders: bool = False

    @property
    def conflict(self) -> Rejection | None:
        """The rejection that holds for all nodes, or None."""
        return self.filtering.conflict


class NodeFinder:
    """Finds feasible nodes; it keeps the offset at which the last search stopped."""

    def __init__(self, extenders: Sequence[Extender], nodes: NodeCache) -> None:
        self._extenders = [each for each in extenders if each.config.filter_verb]
        self._nodes = nodes
        self._next = 0
        self._sorted_keys: Mapping[str, NodeState] = {}
        self._sorted: list[str] = []

    async def find(self, case: PodAttempt) -> FeasibleNodes:
        """Find the feasible nodes. Raises ExtenderError if a non-ignorable extender fails."""
        filtering = case.inputs.engine.filter_nodes(case.pod, case.snapshot)
        if filtering.conflict is not None:
            return FeasibleNodes(
                filtering, (), dict.fromkeys(case.snapshot.nodes, filtering.conflict)
            )
        if not filtering.feasible:
            return FeasibleNodes(filtering, (), filtering.rejected)
        statuses: dict[str, Rejection] = {}
        left = await self._try_nominated(case, filtering, statuses)
        if left:
            return FeasibleNodes(filtering, left, statuses)
        fitting = self._run_in_tree_filters(case, filtering, statuses)
        left = await self._run_extender_filters(case, fitting, statuses)
        return FeasibleNodes(
            filtering, left, statuses, filtered_by_extenders=len(left) != len(fitting)
        )

    async def _try_nominated(
        self, case: PodAttempt, filtering: FilterDecision, statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        name = case.pod.nominated_node
        if name is None or name not in case.snapshot.nodes or name in filtering.rejected:
            return ()
        try:
            return await self._run_extender_filters(case, (name,), statuses)
        except ExtenderError:  # upstream logs it, and examines all nodes
            return ()

    def _run_in_tree_filters(
        self, case: PodAttempt, filtering: FilterDecision, statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        """Return the nodes that pass the in-tree filters, up to the number to find."""
        nodes = self._sorted_names(case.snapshot.nodes)
        order = rotated(nodes, self._next % len(nodes))
        percentage = case.inputs.profile.percentage_of_nodes_to_score
        enough = feasible_nodes_to_find(len(order), percentage)
        found, looked_at = first_feasible(order, filtering.feasible, enough)
        self._next = (self._next + looked_at) % len(order)
        if found and not self._extenders:
            return tuple(found)  # no status is read
        rejected = filtering.rejected
        if looked_at == len(order):
            statuses.update(rejected)
        else:
            examined = frozenset(order[:looked_at])
            statuses |= {
                name: node_status
                for name, node_status in rejected.items()
                if name in examined or node_status.reasons[0].code is Code.NOT_EXAMINED
            }
        return tuple(found)

    def _sorted_names(self, nodes: Mapping[str, NodeState]) -> list[str]:
        """Return the names in order; they are sorted anew only if the set of nodes may differ."""
        keys = nodes.shared if isinstance(nodes, SharedMapping) else nodes
        if keys is not self._sorted_keys:
            self._sorted_keys, self._sorted = keys, sorted(keys)
        return self._sorted

    async def _run_extender_filters(
        self, case: PodAttempt, names: tuple[str, ...], statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        left = names
        for extender in self._extenders:
            if not left:
                break
            if not extender.is_interested(case.pod):
                continue
            try:
                filtered = await extender.filter(case.cached, self.node_documents(left))
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise
            statuses.update(filtered.statuses)
            left = filtered.left
        return left

    def node_documents(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return nodes' JSON, by name."""
        cached = self._nodes.cached
        return {name: cached[name].raw for name in names if name in cached}
