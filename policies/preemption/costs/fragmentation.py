"""What a preemption leaves of a resource that comes in whole units, such as GPUs.

Free units that are spread over nodes do not fit a pod that needs a whole node. So the best node is
that on which the fewest remain free. For example, nodes with eight GPUs each, and a preemptor that
needs four:

    node   free before   its victims have   remaining
    a      0             8                  4
    b      1             4                  1
    c      0             4                  0, perfectly packed

Node c is preferred. The request of the preemptor is the same on every node, so the key is what is
free before it is placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.decision import Candidate

NVIDIA_GPU: Final = "nvidia.com/gpu"
LEAST_FRAGMENTATION: Final = "least fragmentation"


@dataclass(frozen=True, slots=True)
class BoundFragmentation(Criterion[Candidate]):
    """The criterion for a decision, over ``resource``."""

    resource: str


@dataclass(frozen=True, slots=True)
class FragmentationCriterion:
    """Prefers the candidate that leaves the fewest units of a resource free on its node.

    It is an extended resource. Victims on other nodes do not count.
    """

    name: str = LEAST_FRAGMENTATION
    resource: str = NVIDIA_GPU

    def bind(self, snapshot: Snapshot) -> BoundFragmentation:
        """Return the criterion for a decision; its key is what is free without the victims."""

        def key(candidate: Candidate) -> int:
            state = snapshot.nodes[candidate.node]
            present = {pod.uid for pod in state.pods}
            left = [pod for pod in candidate.victims.pods if pod.uid in present]
            requested = state.without_pods(left).requested.scalars
            allocatable = state.node.allocatable.scalars
            return allocatable.get(self.resource, 0) - requested.get(self.resource, 0)

        return BoundFragmentation(self.name, key, self.resource)
