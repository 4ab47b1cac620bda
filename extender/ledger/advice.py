"""What the owner of a victim can do, each for a fact that the entry shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from extender.ledger.entry import LedgerPod, LedgerRecord
from policies.kubernetes.duration import format_duration

ADVICE: Final = "advice"
"""The topic of such a line in an account."""

_LONG_RUN_SECONDS: Final = 600
_SECOND_NS: Final = 10**9


def advice(victim: LedgerPod, record: LedgerRecord, preemptions: int = 1) -> Iterator[str]:
    """Yield what the owner of a victim can do; it was a victim of so many ``preemptions``."""
    entry, preemptor, chosen = record.entry, record.entry.pod, record.entry.chosen
    with_class = f", class {preemptor.priority_class}" if preemptor.priority_class else ""
    yield (
        f"Its priority is {victim.priority}, that of {preemptor.key} {preemptor.priority}"
        f"{with_class}. A pod is a victim only of pods of higher priority: a PriorityClass of"
        f" {preemptor.priority} or more excludes this preemption."
    )
    if chosen is not None and chosen.num_pdb_violations:
        budgets = ", ".join(chosen.violated_pdbs) or "a disruption budget"
        yield (
            f"The decision violates {budgets}. A budget is a preference, not a guarantee, unless"
            " the policy has a guard with strict budgets."
        )
    elif "fewest PDB violations" in entry.criteria:
        yield (
            "The decision violates no PodDisruptionBudget: none covers the pod, or its budget"
            " allowed this eviction. A budget that allows none makes other nodes preferable."
        )
    if victim.run_seconds >= _LONG_RUN_SECONDS:
        ran = format_duration(victim.run_seconds * _SECOND_NS)
        yield (
            f"It had run for {ran}. What it had not saved is lost: save checkpoints, and name their"
            " annotation in the policy, which can then prefer victims that lose less work."
        )
    if not victim.owner:
        yield "It has no controller, so no pod replaces it: run it with a Job or a Deployment."
    if preemptions > 1:
        yield (
            f"It was a victim in {preemptions} decisions. A cool-down in the policy protects the"
            " pods of a workload for a time after an eviction."
        )
