"""Find the feasible nodes of a pod: the in-tree filters, then extenders' filters in order.

For a nominated pod its node is tried first, alone, and taken if it is feasible. Otherwise nodes are
examined from where the last search stopped, until enough are feasible. Each extender is sent the
nodes that the previous one has left, and may reject them with reasons. Nodes that were not
examined, and those that an extender dropped without a reason, have no status.

Source: findNodesThatFitPod in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakeapi.controlplane.scheduler.calling import Extender, ExtenderError
from fakeapi.controlplane.scheduler.configuration import Profile
from fakeapi.controlplane.scheduler.sampling import from_offset, nodes_to_find, until_enough
from fakeapi.controlplane.scheduler.sightings import NodeSightings, SeenPod
from policies.decision import Code, FilterDecision, Rejection
from policies.engine import Engine
from policies.model import Pod, Snapshot


@dataclass(frozen=True, slots=True)
class Playing:
    """A profile and the engine that follows its rules."""

    profile: Profile
    engine: Engine


@dataclass(frozen=True, slots=True)
class Case:
    """A pod that is being scheduled: as JSON, as it is cached, and the snapshot that is used."""

    seen: SeenPod
    pod: Pod
    playing: Playing
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Search:
    """The feasible nodes, and the statuses of others; ``filtering`` is the in-tree result."""

    filtering: FilterDecision
    left: tuple[str, ...]
    statuses: Mapping[str, Rejection]
    sieved: bool = False

    @property
    def conflict(self) -> Rejection | None:
        """The rejection that holds for all nodes, or None."""
        return self.filtering.conflict


class Searcher:
    """Finds feasible nodes; it keeps the offset at which the last search stopped."""

    def __init__(self, extenders: Sequence[Extender], nodes: NodeSightings) -> None:
        self._extenders = [each for each in extenders if each.config.filter_verb]
        self._nodes = nodes
        self._next = 0

    async def search(self, case: Case) -> Search:
        """Find the feasible nodes. Raises ExtenderError if a non-ignorable extender fails."""
        filtering = case.playing.engine.filter_nodes(case.pod, case.snapshot)
        if filtering.conflict is not None:
            return Search(filtering, (), dict.fromkeys(case.snapshot.nodes, filtering.conflict))
        statuses: dict[str, Rejection] = {}
        left = await self._try_nominated(case, filtering, statuses)
        if left:
            return Search(filtering, left, statuses)
        fitting = self._examine(case, filtering, statuses)
        left = await self._sieve(case, fitting, statuses)
        return Search(filtering, left, statuses, sieved=len(left) != len(fitting))

    async def _try_nominated(
        self, case: Case, filtering: FilterDecision, statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        name = case.pod.nominated_node
        if name is None or name not in case.snapshot.nodes or name in filtering.rejected:
            return ()
        try:
            return await self._sieve(case, (name,), statuses)
        except ExtenderError:  # upstream logs it, and examines all nodes
            return ()

    def _examine(
        self, case: Case, filtering: FilterDecision, statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        """Return the nodes that pass the in-tree filters, up to the number to find."""
        nodes = sorted(case.snapshot.nodes)
        order = from_offset(nodes, self._next % len(nodes))
        percentage = case.playing.profile.percentage_of_nodes_to_score
        enough = nodes_to_find(len(order), percentage)
        found, looked_at = until_enough(order, frozenset(filtering.feasible), enough)
        self._next = (self._next + looked_at) % len(order)
        rejected = filtering.rejected
        if looked_at == len(order):
            statuses.update(rejected)
        else:
            seen = frozenset(order[:looked_at])
            statuses |= {
                name: why
                for name, why in rejected.items()
                if name in seen or why.reasons[0].code is Code.NOT_EXAMINED
            }
        return tuple(found)

    async def _sieve(
        self, case: Case, names: tuple[str, ...], statuses: dict[str, Rejection]
    ) -> tuple[str, ...]:
        left = names
        for extender in self._extenders:
            if not left:
                break
            if not extender.is_interested(case.pod):
                continue
            try:
                sieved = await extender.filter(case.seen, self.written(left))
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise
            statuses.update(sieved.statuses)
            left = sieved.left
        return left

    def written(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return nodes' JSON, by name."""
        known = self._nodes.seen
        return {name: known[name].raw for name in names if name in known}
