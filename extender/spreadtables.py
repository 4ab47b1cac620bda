"""Tables that explain a WorkloadSpread: its subsets by version, and the deletion order of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from extender.explain_spread import Explained
from extender.spreadanswers import Answer
from extender.tables import plain_table
from policies.spreading.conditions import schedulable
from policies.spreading.costs import DELETION_ORDER, Cost, Standing
from policies.spreading.model import (
    FAKE_SUBSET,
    SECOND,
    UNLIMITED,
    Spread,
    SpreadPod,
    Subset,
    SubsetStatus,
)
from policies.spreading.placement_rules import Fault
from policies.spreading.reconciling import Outcome

_SHOWN_PODS = 30


def spread_table(explained: Explained) -> RenderableType:
    """Return the subsets in each version, the deletion order with reasons, and the next steps."""
    spread, outcome = explained.spread, explained.outcome
    parts: list[RenderableType] = [_head(spread, outcome), _subsets(spread, outcome)]
    if outcome.costs:
        parts.append(_pods(spread, outcome))
    parts.extend(_notes(outcome))
    if explained.answer is not None:
        parts.append(_admitted(explained.answer))
    return Group(*parts)


def faults_table(key: str, faults: Iterable[Fault]) -> RenderableType:
    """Return the validation errors of a WorkloadSpread as text."""
    told = [Text(str(fault)) for fault in faults]
    verdict = f"{key} is not valid" if told else f"{key} is valid"
    return Group(Text(verdict, style="bold"), *told)


def _head(spread: Spread, outcome: Outcome) -> Text:
    pods = sum(len(pods) for pods in outcome.groups.subsets.values())
    target = "no target" if spread.target is None else str(spread.target)
    told = f"{spread.key} spreads {target}: {pods} pods, {outcome.replicas} replicas wanted"
    return Text(told, style="bold")


def _subsets(spread: Spread, outcome: Outcome) -> RenderableType:
    status = outcome.status
    versions = sorted(status.versions, key=lambda version: (version != outcome.newest, version))
    marked = [f"{each} (newest)" if each == outcome.newest else each for each in versions]
    table = plain_table("subset", "limit", *marked, "all", "schedulable")
    for subset in spread.subsets:
        overall = _entry(status.subsets, subset)
        table.add_row(
            subset.name,
            "none" if subset.max_replicas is None else str(subset.max_replicas),
            *(_in_version(outcome, version, subset) for version in versions),
            _counts(overall),
            _condition(overall),
        )
    outside = outcome.groups.subsets.get(FAKE_SUBSET, ())
    if outside:
        counts = (_outside(outcome, version) for version in versions)
        table.add_row("in no subset", "", *counts, str(len(outside)), "")
    return table


def _in_version(outcome: Outcome, version: str, subset: Subset) -> str:
    """Return the pod counts of a subset in a version, and the deletion costs of its pods."""
    told = _counts(_entry(outcome.status.versions[version], subset))
    costs = _costs(outcome, version, subset.name)
    return f"{told}; {costs}" if costs else told


def _outside(outcome: Outcome, version: str) -> str:
    count = len(outcome.groups.versions.get(version, {}).get(FAKE_SUBSET, ()))
    costs = _costs(outcome, version, FAKE_SUBSET)
    return f"{count}; {costs}" if costs else str(count)


def _costs(outcome: Outcome, version: str, subset: str) -> str:
    """Return the deletion costs, lowest first; with the number of pods of each, if they differ."""
    pods = outcome.groups.versions.get(version, {}).get(subset, ())
    costs = [outcome.costs[pod.name].value for pod in pods if pod.name in outcome.costs]
    counted = sorted(Counter(costs).items())
    if len(counted) == 1:
        return f"cost {counted[0][0]}"
    told = ", ".join(f"{count} at {value}" for value, count in counted)
    return f"cost {told}" if told else ""


def _entry(statuses: Iterable[SubsetStatus], subset: Subset) -> SubsetStatus | None:
    return next((each for each in statuses if each.name == subset.name), None)


def _counts(status: SubsetStatus | None) -> str:
    """Return the numbers of replicas, of missing ones, and of those in creation or deletion."""
    if status is None:
        return ""
    told = [str(status.replicas)]
    if status.missing != UNLIMITED:
        told.append(f"lacks {status.missing}" if status.missing else "full")
    if status.creating:
        told.append(f"{len(status.creating)} coming")
    if status.deleting:
        told.append(f"{len(status.deleting)} going")
    return ", ".join(told)


def _condition(status: SubsetStatus | None) -> str:
    found = schedulable(status)
    if found is None:
        return ""
    return ": ".join(part for part in (found.status, found.reason, found.message) if part)


def _pods(spread: Spread, outcome: Outcome) -> RenderableType:
    """Return the table of the pods that have a deletion cost, in deletion order."""
    table = plain_table("", "goes first", "subset", "version", "cost", "because")
    versions = {
        pod.name: version
        for version, by_subset in outcome.groups.versions.items()
        for pods in by_subset.values()
        for pod in pods
    }
    subsets = {pod.name: name for name, pods in outcome.groups.subsets.items() for pod in pods}
    doomed = {each.pod.name for each in outcome.doomed}
    ranked = list(_ranked(outcome))
    for pod in ranked[:_SHOWN_PODS]:
        cost, subset = outcome.costs[pod.name], subsets[pod.name]
        table.add_row(
            "→" if pod.name in doomed else "",
            pod.name,
            "" if subset == FAKE_SUBSET else subset,
            versions[pod.name],
            str(cost.value),
            _because(cost, subset, spread) + _aged(cost, versions[pod.name], outcome),
        )
    if len(ranked) > _SHOWN_PODS:
        table.add_row("", f"and {len(ranked) - _SHOWN_PODS} more", "", "", "", "")
    return table


def _ranked(outcome: Outcome) -> Iterator[SpreadPod]:
    by_cost: dict[int, list[SpreadPod]] = {}
    for pods in outcome.groups.subsets.values():
        for pod in pods:
            if pod.name in outcome.costs:
                by_cost.setdefault(outcome.costs[pod.name].value, []).append(pod)
    for _, pods in sorted(by_cost.items()):
        yield from DELETION_ORDER.sort(pods)


def _because(cost: Cost, subset: str, spread: Spread) -> str:
    match cost.standing:
        case Standing.OUTSIDE:
            return "it is in no subset"
        case Standing.EXCESS:
            by = "" if cost.criterion is None else f", and goes first by {cost.criterion}"
            return f"{subset} has more than {_limits(spread)[subset]}{by}"
        case Standing.WITHIN:
            places = [each.name for each in spread.subsets]
            return f"{subset} is number {places.index(subset) + 1} of {len(places)}"


def _aged(cost: Cost, version: str, outcome: Outcome) -> str:
    """Return the remark on a pod of an old version, "" for others."""
    if version == outcome.newest or cost.standing is Standing.OUTSIDE:
        return ""
    return "; an old version is emptied from the front"


def _limits(spread: Spread) -> Mapping[str, object]:
    return {each.name: each.max_replicas for each in spread.subsets}


def _notes(outcome: Outcome) -> Iterator[Text]:
    if outcome.failure:
        yield Text(f"nothing is written, and it is tried again: {outcome.failure}", style="yellow")
    if outcome.doomed:
        names = ", ".join(f"{each.pod.name} ({each.subset})" for each in outcome.doomed)
        yield Text(f"deleted, since they cannot be scheduled: {names}")
    for event in outcome.events:
        yield Text(f"{event.type} {event.reason}: {event.message}")
    if outcome.look_again_ns is not None:
        yield Text(f"looked at again in {outcome.look_again_ns / SECOND:g} s", style="italic")


def _admitted(answer: Answer) -> Text:
    admission = answer.admission
    if admission.refusal:
        return Text(f"the pod is refused: {admission.refusal}", style="bold")
    if admission.spread is None:
        return Text("the pod is let through: it belongs to no WorkloadSpread", style="bold")
    where = "no subset" if admission.subset is None else f"subset {admission.subset}"
    passed = "".join(
        f"\npassed over {name}: {problem}" for name, problem in admission.passed.items()
    )
    cost = "" if admission.cost is None else f", at a cost of {admission.cost}"
    told = f"the pod is let through, of {admission.spread} and {where}{cost}{passed}"
    return Text(told, style="bold")
