"""The inputs of a decision, and a change of them that would have spared a victim."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from policies.kubernetes.quantity import format_binary
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.policy import SchedulerRules


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """The arguments of :func:`policies.preemption.reference_engine.preempt`.

    ``potential`` are the nodes to try and ``among`` the nodes to filter; None: as the decision
    finds them.
    """

    pod: Pod
    snapshot: Snapshot
    rules: SchedulerRules
    potential: frozenset[str] | None = None
    among: frozenset[str] | None = None


class ChangeKind(Enum):
    """What a counterfactual changes, in the order in which counterfactuals are returned."""

    VICTIM_PRIORITY = "victim priority"
    DISRUPTIONS_ALLOWED = "disruptions allowed"
    ADDITIONAL_NODE = "additional node"
    FIRST_CRITERION = "first criterion"
    PREEMPTOR_REQUEST = "preemptor request"
    PREEMPTION_POLICY = "preemption policy"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a decision on changed inputs.

    ``fitting`` is the first node by name that the preemptor fits without preemption, and did not
    fit before the change; "" for none. Else ``chosen`` is the candidate that is chosen, with its
    victims; None: the preemptor stays pending.
    """

    fitting: str
    chosen: Candidate | None

    def spares(self, uid: str) -> bool:
        """Return whether the pod with a UID is no victim."""
        return self.chosen is None or all(pod.uid != uid for pod in self.chosen.victims.pods)

    def __str__(self) -> str:
        if self.fitting:
            return f"no preemption needed: the preemptor fits {self.fitting}"
        if self.chosen is None:
            return "the preemptor stays pending"
        victims = ", ".join(pod.key for pod in self.chosen.victims.pods)
        return f"victims on {self.chosen.node}: {victims}"


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A change that would have spared a victim.

    ``subject`` is what changes: the key of the victim, of the budget or of the preemptor, or the
    name of the node that is copied, of the criterion, or of the resource. ``amount`` is the size of
    the change and ``value`` the number after it (CPU in milliCPU, memory and storage in bytes);
    both are 0 for a change without a number. ``inputs`` are those after the change.
    """

    kind: ChangeKind
    subject: str
    amount: int
    value: int
    outcome: Outcome
    inputs: DecisionInputs = field(repr=False, compare=False)

    @property
    def change(self) -> str:
        """The change in one line."""
        match self.kind:
            case ChangeKind.VICTIM_PRIORITY:
                return f"priority of {self.subject} + {self.amount} (to {self.value})"
            case ChangeKind.DISRUPTIONS_ALLOWED:
                disruptions = "disruption" if self.amount == 1 else "disruptions"
                return (
                    f"PodDisruptionBudget {self.subject} allows {self.amount} {disruptions} fewer "
                    f"({self.value})"
                )
            case ChangeKind.ADDITIONAL_NODE:
                return f"one more node like {self.subject}"
            case ChangeKind.FIRST_CRITERION:
                by = self.inputs.rules.policy.cheapest_by
                return f"criterion {self.subject} first" + (
                    "" if by is None else f" after {by.name}"
                )
            case ChangeKind.PREEMPTOR_REQUEST:
                amount, value = (
                    format_amount(self.subject, each) for each in (self.amount, self.value)
                )
                return f"{self.subject} request of the preemptor smaller by {amount} ({value})"
            case ChangeKind.PREEMPTION_POLICY:
                return "preemptionPolicy: Never on the preemptor"

    def __str__(self) -> str:
        return f"{self.change}: {self.outcome}"


def format_amount(resource: str, amount: int) -> str:
    """Return an amount of a resource, in its unit of scheduling, as a quantity."""
    if resource == "cpu":
        return f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_binary(amount)
    return str(amount)
