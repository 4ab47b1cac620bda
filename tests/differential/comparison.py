"""Whether ``explain preempt`` decides as a real kube-scheduler did.

Where upstream chooses at random, each outcome is accepted: which of the equally good nodes is
chosen, the order of the members of a group that is preempted as a whole, and the order in which
disruption budgets are counted (both a map's; since 1.37 the latter matters, so a case is a mismatch
only if no order explains it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from extender.explain.cluster_files import load_cluster, load_pod
from extender.explain.cluster_objects import find_pod, read_objects
from extender.explain.decisions import explain_preempt
from policies.kubernetes.releases import release
from policies.kubernetes.snapshot import Snapshot
from policies.kubernetes.storage import StorageKind
from policies.preemption import fit_error
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering.status import FEASIBLE
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER, SchedulerRules
from tests.builders import Document
from tests.differential.case import Answer, Case

_BUDGET = "PodDisruptionBudget"
_FOUND = "found a potential placement"
_NO_CANDIDATE = "no candidate node for preemption"


def differences(case: Case) -> list[str]:
    """Return the differences between our answer and kube-scheduler's."""
    found = _compared(case, case.items)
    if not found:
        return []
    for items in _charged_otherwise(case.items):
        if not _compared(case, items):
            return []
    return found


def decide(case: Case) -> PreemptionDecision:
    """Decide as ``explain preempt`` does."""
    return _decide(case, case.items)


def _decide(case: Case, items: Sequence[Document]) -> PreemptionDecision:
    rules = SchedulerRules(release(case.upstream, case.gates))
    with TemporaryDirectory(prefix="case-") as name:
        cluster, pod = Path(name) / "cluster.json", Path(name) / "pod.json"
        cluster.write_bytes(msgspec.json.encode({"kind": "List", "items": items}))
        pod.write_bytes(msgspec.json.encode(case.pod))
        objects = read_objects([str(cluster)])
        files = load_cluster(objects, rules.release)
        runner = load_pod(find_pod(str(pod), objects), files, rules.release)
    return explain_preempt(runner, _complete(files.snapshot), rules, None).decision


def _complete(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a case that has all objects of its cluster.

    Only CSINodes may be missing from a recorded case; without any, they count as unknown.
    """
    unknown = snapshot.storage.unknown & {StorageKind.CSI_NODES}
    return replace(snapshot, storage=replace(snapshot.storage, unknown=unknown))


def _compared(case: Case, items: Sequence[Document]) -> list[str]:
    return list(_differences(_decide(case, items), case))


def _differences(ours: PreemptionDecision, case: Case) -> Iterator[str]:
    theirs = case.answer
    if ours.not_evaluated:
        yield f"we do not judge {', '.join(sorted(ours.not_evaluated))}"
    elif theirs.bound_to:
        if ours.rejected.get(theirs.bound_to) != FEASIBLE:
            yield f"it was bound to {theirs.bound_to}; we say that it does not fit: {ours.message}"
    elif _fits(ours):
        yield f"it was not bound; we say that it fits {_fitting(ours)}"
    else:
        yield from _preemption(ours, case, theirs)


def _fits(ours: PreemptionDecision) -> bool:
    return ours.reason == str(FEASIBLE)


def _fitting(ours: PreemptionDecision) -> str:
    return ", ".join(node for node, each in ours.rejected.items() if each == FEASIBLE)


def _preemption(ours: PreemptionDecision, case: Case, theirs: Answer) -> Iterator[str]:
    units, offered = _whole_groups(case), theirs.candidates or {}
    for node in sorted({*offered, *ours.candidates}):
        found, offer = ours.candidates.get(node), offered.get(node)
        one = other = None
        if offer is not None:
            one = _in_units(offer.victims, units), offer.violations
        if found is not None:
            victims = [pod.uid for pod in found.victims.pods]
            other = _in_units(victims, units), found.victims.violations
        if one != other:
            yield f"on {node} its victims and violations are {one}, ours {other}"
    yield from _choice(_answerable(ours, case), case, theirs)


def _whole_groups(case: Case) -> Mapping[str, str]:
    """Return the group of each pod that is preempted with its group, by UID."""
    whole = {
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in case.items
        if item["kind"] == "PodGroup" and "all" in item["spec"].get("disruptionMode", {})
    }
    found = {}
    for item in case.items:
        name = item.get("spec", {}).get("schedulingGroup", {}).get("podGroupName", "")
        if (item["metadata"].get("namespace"), name) in whole:
            found[item["metadata"]["uid"]] = f"{item['metadata']['namespace']}/{name}"
    return found


def _in_units(victims: Sequence[str], groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return victims with the members of each group in order; upstream's order is a map's."""
    units = [groups.get(uid, uid) for uid in victims]
    return tuple(sorted(victims, key=lambda uid: (units.index(groups.get(uid, uid)), uid)))


def _answerable(ours: PreemptionDecision, case: Case) -> PreemptionDecision:
    """Return the decision among the candidates that an extender may answer.

    The victims of a whole group may be on several nodes; such candidates are offered, but the
    answer to the call leaves them out.
    """
    nodes = {
        item["metadata"]["uid"]: item["spec"].get("nodeName")
        for item in case.items
        if item["kind"] == "Pod"
    }
    candidates = {
        node: each
        for node, each in ours.candidates.items()
        if all(nodes[pod.uid] == node for pod in each.victims.pods)
    }
    if len(candidates) == len(ours.candidates) or ours.chosen is None:
        return ours
    ranked = DEFAULT_CANDIDATE_ORDER.sort(candidates.values())
    chosen = ranked[0] if ranked else None
    rules = release(case.upstream, case.gates)
    expected = fit_error.candidate_found(ours.chosen, rules)
    none = expected.partition(_FOUND)[0] + _NO_CANDIDATE
    other = fit_error.candidate_found(chosen, rules) if chosen else none
    return replace(ours, chosen=chosen, message=ours.message.replace(expected, other))


def _choice(ours: PreemptionDecision, case: Case, theirs: Answer) -> Iterator[str]:
    chosen, nominated = ours.chosen, ours.candidates.get(theirs.nominated_node)
    if chosen is None or nominated is None:
        node = _nominated_before(ours, case) if chosen is None else chosen.node
        if node != theirs.nominated_node:
            yield f"it chose {theirs.nominated_node or None}, we {node or None}"
        message = ours.message
    else:
        if DEFAULT_CANDIDATE_ORDER.key(chosen)[0] != DEFAULT_CANDIDATE_ORDER.key(nominated)[0]:
            yield f"it chose {theirs.nominated_node}, we {chosen.node}, by {ours.decided_by}"
        going = {pod.uid for pod in nominated.victims.pods if not pod.terminating}
        if going != set(theirs.victims):
            yield f"it told {sorted(theirs.victims)} to go, we {sorted(going)}"
        rules = release(case.upstream, case.gates)
        expected, other = (fit_error.candidate_found(each, rules) for each in (chosen, nominated))
        message = ours.message.replace(expected, other) if expected else ours.message
    if message != theirs.message:
        yield f"it says {theirs.message!r}, we {message!r}"


def _nominated_before(ours: PreemptionDecision, case: Case) -> str:
    """Return the nomination that a pod keeps; one that may preempt and finds no node loses it."""
    nominated: str = (case.pod.get("status") or {}).get("nominatedNodeName", "")
    return "" if ours.eligible else nominated


def _charged_otherwise(items: Sequence[Document]) -> Iterator[Sequence[Document]]:
    budgets = [item for item in items if item["kind"] == _BUDGET]
    others = [item for item in items if item["kind"] != _BUDGET]
    for order in permutations(budgets):
        yield [*others, *order]
