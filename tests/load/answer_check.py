"""Whether kept answers are those of the reference engine on the same state.

The extender's log has the order of its decisions, the resource version of its pods, and the
victims. From this and from the events of a watch (:mod:`tests.load.history`) the state of each
decision is rebuilt, and the reference engine decides on it. Its answer must be equal. An answer
that reports that the deadline has passed may name a worse candidate, but no other node.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.kube.decoders.pods import decode_pod
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext
from extender.protocol.verbs import VERBS
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from tests.bench.clusters import encoded
from tests.load.bodies import preemptors
from tests.load.history import History
from tests.load.mixes import ABOVE, KIND, KINDS
from tests.load.records import Change, Decision, Sample

_CUT_SHORT: Final = "were not tried before the deadline"


@dataclass(slots=True)
class Checked:
    """The results of the check; ``wrong`` has a line for each wrong answer.

    ``behind`` are seconds: for how long a change had been visible to others when a call was made
    whose answer did not know it.
    """

    right: dict[str, int] = field(default_factory=dict)
    cut_short: int = 0
    wrong: list[str] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)


def check(
    samples: Iterable[Sample],
    decisions: Sequence[Decision],
    changes: Sequence[Change],
    first: Snapshot,
    bodies: Mapping[str, Sequence[bytes]],
    rules: SchedulerRules,
) -> Checked:
    """Check every sample; one that is not in the log is wrong."""
    waiting = {sample.request_id: sample for sample in samples}
    history = History(first, changes, rules.release)
    asking = {
        pod.key: pod
        for kind in KINDS
        for pod in (decode_pod(encoded(each), rules.release) for each in preemptors(kind))
    }
    found = Checked()
    lags = Lags(changes)
    for decision in decisions:
        version = int(decision.pods_version)
        sample = waiting.pop(decision.request_id, None)
        if version < history.version:
            found.wrong.append(f"{decision.request_id}: pods went back to version {version}")
            continue
        if decision.event == "preempt":
            history.forget(asking[decision.pod])
        if sample is not None or decision.victims:
            history.advance(version)
        if sample is not None:
            _check_one(found, sample, decision, history.snapshot(), bodies, rules)
            if sample.phase != ABOVE:
                found.behind.append(lags.behind(version, sample.started))
        if decision.node is not None and decision.victims:
            history.name(asking[decision.pod], decision.node, decision.victims)
    found.wrong += [f"{each}: not in the log" for each in waiting]
    return found


class Lags:
    """The times at which a watch of our own has received each version."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._versions = [change.version for change in changes]
        self._seen = [change.at for change in changes]

    def behind(self, version: int, at: float) -> float:
        """Return for how long a newer version than this had been visible at a time."""
        following = bisect_right(self._versions, version)
        if following == len(self._seen):
            return 0.0
        return max(0.0, at - self._seen[following])


def _check_one(
    found: Checked,
    sample: Sample,
    decision: Decision,
    snapshot: Snapshot,
    bodies: Mapping[str, Sequence[bytes]],
    rules: SchedulerRules,
) -> None:
    kind = KIND[sample.kind]
    call = at_once(VERBS[kind.verb](bodies[kind.name][sample.body], rules))
    expected = call.decide(CallContext(snapshot, ReferenceEngine(rules)))
    given = json.loads(sample.answer)
    if any(_CUT_SHORT in note for note in decision.notes):
        fault = _not_among(given, expected.decision)
        found.cut_short += 1
    else:
        fault = difference(given, json.loads(expected.body))
    if fault:
        found.wrong.append(
            f"{sample.request_id} ({kind.name}, version {decision.pods_version}): {fault}"
        )
    else:
        found.right[kind.name] = found.right.get(kind.name, 0) + 1


def difference(given: Any, expected: Any) -> str:
    """Return the first difference of an answer in one line; "" if there is none."""
    if not isinstance(given, dict):
        return f"not an object: {str(given)[:100]}"
    for key in [*expected, *(each for each in given if each not in expected)]:
        theirs, ours = given.get(key), expected.get(key)
        if theirs != ours:
            return f"{key}: {_first_difference(theirs, ours)}"
    return ""


def _first_difference(given: Any, expected: Any) -> str:
    if isinstance(given, dict) and isinstance(expected, dict):
        keys = [*expected, *(each for each in given if each not in expected)]
        key = next(each for each in keys if given.get(each) != expected.get(each))
        return f"{key}: {given.get(key)!r} in place of {expected.get(key)!r}"
    if isinstance(given, list) and isinstance(expected, list):
        more, fewer = set(given) - set(expected), set(expected) - set(given)
        return f"{sorted(more)[:3]} too many, {sorted(fewer)[:3]} missing, or in another order"
    return f"{given!r} in place of {expected!r}"


def _not_among(given: Any, decision: object) -> str:
    """Return what is wrong with the candidate of a search that was cut short."""
    assert isinstance(decision, PreemptionDecision)
    for node, entry in given["NodeNameToMetaVictims"].items():
        candidate = decision.candidates.get(node)
        uids = [pod["UID"] for pod in entry["Pods"]]
        if candidate is None or uids != [pod.uid for pod in candidate.victims.pods]:
            return f"{node} is no candidate with these victims"
    return ""
