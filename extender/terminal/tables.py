"""Tables of decisions: the best candidates first, rejected nodes grouped by reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.terminal.criterion_values import heading, shown_criteria, shown_value
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_table
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate, freed_devices
from policies.preemption.explanation import PreemptionExplanation, ProtectedPod
from policies.preemption.filtering.status import FEASIBLE, FilterDecision, Rejection, explained
from policies.replicaset import ScaleDownDecision

_SHOWN_CANDIDATES = 5
_SHOWN_NAMES = 6
_SHOWN_VICTIMS = 20
_SHOWN_SPARED = 5


def filter_table(decision: FilterDecision, rows: TableRows) -> RenderableType:
    """Return the nodes that a pod fits, and for each reason the nodes that it rejects."""
    nodes = len(decision.feasible) + len(decision.rejected)
    head = Text(f"{decision.pod.key} fits {len(decision.feasible)} of {nodes} nodes", style="bold")
    table = plain_table("nodes", "", "because", "eviction")
    fitting = sorted(frozenset(decision.feasible).difference(decision.undecided))
    if fitting:
        table.add_row(str(len(fitting)), _names(fitting, rows), "fits", "")
    for rejection, names in _by_reason(decision.undecided):
        table.add_row(str(len(names)), _names(names, rows), f"passes: {rejection}", "")
    _add_rejections(table, decision.rejected, rows, "may help")
    return Group(head, table, *_not_evaluated_warning(decision.not_evaluated))


def preempt_table(explanation: PreemptionExplanation, rows: TableRows) -> RenderableType:
    """Return the victims and reprieved pods of the best candidates, and why others are rejected."""
    decision = explanation.decision
    head = Text(next(iter(decision.describe())), style="bold")
    parts: list[RenderableType] = [head]
    if decision.candidates:
        parts.append(_candidates(explanation, rows))
    if decision.search is not None:
        parts.append(Text(str(decision.search)))
    if decision.chosen is not None and decision.chosen.freed_claims:
        parts.append(Text(freed_devices(decision.chosen)))
    if decision.rejected:
        rejections = plain_table("nodes", "", "because", "eviction")
        tried = {n: each for n, each in decision.rejected.items() if n in explanation.tried}
        others = {n: each for n, each in decision.rejected.items() if n not in tried}
        _add_rejections(rejections, tried, rows, "does not help")
        _add_rejections(rejections, others, rows, "may help")
        parts.append(rejections)
    parts.extend(_protected(explanation.protected, rows))
    if decision.message:
        parts.append(Text(decision.message, style="italic"))
    return Group(*parts, *_not_evaluated_warning(decision.not_evaluated))


def scale_down_table(decision: ScaleDownDecision, key: str, rows: TableRows) -> RenderableType:
    """Return the pods that the ReplicaSet ``key`` deletes, the next ones, and the reasons."""
    victims, spared = decision.victims, decision.order[decision.count :]
    head = Text(f"{key}: {len(victims)} of {len(decision.order)} pods are deleted", style="bold")
    table = plain_table("", "pod", "node", "before the next by")
    criteria = {each.replica: each.criterion for each in decision.explanations}
    for mark, replicas, limit in (("→", victims, _SHOWN_VICTIMS), ("", spared, _SHOWN_SPARED)):
        shown = rows.at_most(limit)
        for each in replicas[:shown]:
            table.add_row(mark, each.name, each.node, criteria.get(each, ""))
        if len(replicas) > shown:
            table.add_row(mark, f"and {len(replicas) - shown} more", "", "")
    return Group(head, table)


def _candidates(explanation: PreemptionExplanation, rows: TableRows) -> Table:
    decision = explanation.decision
    criteria = shown_criteria(explanation.order)
    heads = map(heading, criteria)
    table = plain_table("", "candidate", "victims", "reprieved", "PDBs violated", *heads)
    ranked = explanation.order.sort(decision.candidates.values())
    shown = rows.at_most(_SHOWN_CANDIDATES)
    for candidate in ranked[:shown]:
        spans = bool(candidate.elsewhere)
        table.add_row(
            "→" if candidate == decision.chosen else "",
            f"{candidate.node}\nno extender can confirm it" if spans else candidate.node,
            _names([_with_place(pod, candidate) for pod in candidate.victims.pods], rows, "\n"),
            _names([_with_priority(pod) for pod in candidate.spared], rows, "\n"),
            _violations(candidate, explanation),
            *(shown_value(each, candidate) for each in criteria),
        )
    if len(ranked) > shown:
        table.add_row("", f"and {len(ranked) - shown} more")
    return table


def _violations(candidate: Candidate, explanation: PreemptionExplanation) -> str:
    budgets = ", ".join(explanation.violated.get(candidate.node, ()))
    violations = candidate.victims.violations
    return f"{violations} ({budgets})" if budgets else str(violations)


def _protected(protected: Iterable[ProtectedPod], rows: TableRows) -> Iterator[Text]:
    """Yield a line for each reason for which the policy protects pods."""
    found: dict[str, list[str]] = {}
    for each in protected:
        found.setdefault(each.because, []).append(f"{each.pod.key} on {each.pod.node_name}")
    for because, pods in found.items():
        yield Text(f"{because}: {_names(pods, rows)}")


def _add_rejections(
    table: Table, rejected: Mapping[str, Rejection], rows: TableRows, resolvable: str
) -> None:
    """Add rows; ``resolvable`` is what eviction does where the filters do not rule it out."""
    for rejection, nodes in _by_reason(rejected):
        eviction = resolvable if rejection.resolvable else "cannot help"
        needed = "" if rejection == FEASIBLE else eviction
        table.add_row(str(len(nodes)), _names(nodes, rows), explained(rejection), needed)


def _by_reason(rejected: Mapping[str, Rejection]) -> list[tuple[Rejection, list[str]]]:
    found: dict[Rejection, list[str]] = {}
    for node, rejection in sorted(rejected.items()):
        found.setdefault(rejection, []).append(node)
    return sorted(found.items(), key=lambda each: -len(each[1]))


def _with_priority(pod: Pod) -> str:
    return f"{pod.key} ({pod.priority})"


def _with_place(victim: Pod, candidate: Candidate) -> str:
    away = victim.uid in {pod.uid for pod in candidate.elsewhere}
    return f"{_with_priority(victim)} on {victim.node_name}" if away else _with_priority(victim)


def _names(names: Sequence[str], rows: TableRows, separator: str = ", ") -> str:
    shown = rows.at_most(_SHOWN_NAMES)
    rest = [f"and {len(names) - shown} more"] if len(names) > shown else []
    return separator.join([*names[:shown], *rest])


def _not_evaluated_warning(filters: Iterable[str]) -> Iterator[Text]:
    names = ", ".join(sorted(filters))
    if names:
        yield Text(f"not evaluated, so the result may be too optimistic: {names}", style="yellow")
