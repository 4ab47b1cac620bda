"""What a preemption leaves of a resource that comes in whole units, such as GPUs.

Free units that are spread over nodes do not fit a pod that needs a whole node. So the best node is
that on which the fewest remain free. For example, nodes with eight GPUs each, and a preemptor that
needs four:

    node   free before   its victims have   remaining
    a      0             8                  4
    b      1             4                  1
    c      0             4                  0, perfectly packed

Node c is preferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate

NVIDIA_GPU: Final = "nvidia.com/gpu"
LEAST_FRAGMENTATION: Final = "least fragmentation"


@dataclass(frozen=True, slots=True)
class BoundFragmentation(Criterion[Candidate]):
    """The criterion for a decision, over ``resource``, of which the preemptor takes ``taken``."""

    resource: str
    taken: int


@dataclass(frozen=True, slots=True)
class FragmentationCriterion:
    """Prefers the candidate that leaves the fewest units of a resource free on its node.

    It is an extended resource. Victims on other nodes do not count.
    """

    name: str = LEAST_FRAGMENTATION
    resource: str = NVIDIA_GPU

    def bind(self, preemptor: Pod, snapshot: Snapshot) -> BoundFragmentation:
        """Return the criterion for a decision.

        Its key is what remains, 0 also on a node whose pods request more than it has.
        """
        taken = preemptor.requests.scalars.get(self.resource, 0)

        def key(candidate: Candidate) -> int:
            state = snapshot.nodes[candidate.node]
            present = {pod.uid for pod in state.pods}
            left = [pod for pod in candidate.victims.pods if pod.uid in present]
            requested = state.without_pods(left).requested.scalars
            allocatable = state.node.allocatable.scalars
            free = allocatable.get(self.resource, 0) - requested.get(self.resource, 0)
            return max(0, free - taken)

        return BoundFragmentation(self.name, key, self.resource, taken)
