"""What a cluster without a ledger still shows about the preemption of a pod.

kube-scheduler sets the condition DisruptionTarget of a victim and then deletes it, and records an
Event *Preempted* about it: "Preempted by pod UID on node NODE", with the preemptor as the related
object (pkg/scheduler/framework/preemption/preemption.go in 1.30, executor.go later; of a pod group
it is "Preempted by podgroup UID on node NODE"). Events of Reprieve name the criterion. The API
server deletes Events after an hour by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypedDict, final

import msgspec

from extender.kube.decoders.object_meta import format_time, parse_time
from extender.ledger.why import AccountLine

PREEMPTED: Final = "Preempted"
_TOLD_OF_VICTIM: Final = (PREEMPTED, "NamedAsVictim")
_TOLD_OF_PREEMPTOR: Final = ("VictimsNamed", "FailedScheduling", "Scheduled")
_BY_SCHEDULER: Final = "PreemptionByScheduler"
_MESSAGE: Final = re.compile(
    r"Preempted by (?P<kind>pod|podgroup) (?P<uid>\S+) on node (?P<node>\S+)"
)
_UNKNOWN: Final = (
    "the other candidates and their values, the pods that were spared, and what became of the "
    "victims; Events are deleted after an hour by default"
)


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[_Condition] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    priority: int | None = None


class ClusterPod(msgspec.Struct):
    """What is read of a pod."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Reference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: str | None = None


class PodEvent(msgspec.Struct, rename="camel"):
    """What is read of an Event; ``related`` is the preemptor in one about a victim."""

    involved_object: _Reference = msgspec.field(default_factory=_Reference)
    related: _Reference | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None

    @property
    def at_ns(self) -> int:
        """When it was last observed, in nanoseconds since the epoch; 0 if it has no time."""
        series = self.series or _Series()
        times = (series.last_observed_time, self.last_timestamp, self.event_time)
        return next((at for each in times if (at := parse_time(each))), 0)

    @property
    def pod(self) -> str:
        """``namespace/name`` of its pod."""
        return self.involved_object.key


class EventDocument(TypedDict):
    """An Event."""

    at: str
    pod: str
    reason: str
    message: str


@final
class ClusterEvidence(TypedDict):
    """The output of ``why -o json`` from a cluster.

    ``exists`` is whether a pod of the name exists now. ``events`` are those about preemption, the
    newest first. ``unknown`` is what a cluster does not show, and ``problems`` what it refused.
    """

    pod: str
    source: str
    exists: bool
    account: list[AccountLine]
    events: list[EventDocument]
    unknown: str
    problems: list[str]


def cluster_evidence(
    key: str,
    uid: str,
    source: str,
    pod: ClusterPod | None,
    events: Sequence[PodEvent],
    problems: Sequence[str],
) -> ClusterEvidence | None:
    """Return what a cluster shows about the pod ``namespace/name``; None if it shows no trace.

    ``events`` are those about the pod, and those of reason Preempted about others. A ``uid`` that
    is not empty selects one of several pods that had the same name.
    """
    if pod is not None and uid not in ("", pod.metadata.uid):
        pod = None
    known = uid or ("" if pod is None else pod.metadata.uid)
    found = [each for each in events if _is_told(each, key, uid, known)]
    found.sort(key=lambda each: -each.at_ns)
    if pod is None and not found:
        return None
    lines = (*_pod_lines(pod), *_preemption_lines(key, found))
    return {
        "pod": key,
        "source": source,
        "exists": pod is not None,
        "account": [{"topic": topic, "text": text} for topic, text in lines],
        "events": [_event_document(each) for each in found],
        "unknown": _UNKNOWN,
        "problems": list(problems),
    }


def _is_told(event: PodEvent, key: str, uid: str, known: str) -> bool:
    """Return whether an Event tells of the pod as a victim or as the preemptor.

    ``known`` is its UID, if it is known; ``uid`` is the one that was asked for.
    """
    if event.pod == key:
        is_selected = uid in ("", event.involved_object.uid)
        return is_selected and event.reason in (*_TOLD_OF_VICTIM, *_TOLD_OF_PREEMPTOR)
    if event.reason != PREEMPTED:
        return False
    if known:
        return _preemptor_uid(event) == known
    return event.related is not None and event.related.key == key


def _preemptor_uid(event: PodEvent) -> str:
    match = _MESSAGE.match(event.message or "")
    return match["uid"] if match else ""


def _pod_lines(pod: ClusterPod | None) -> Iterator[tuple[str, str]]:
    if pod is None:
        yield "pod", "does not exist now"
        return
    on = f"on {pod.spec.node_name}" if pod.spec.node_name else "not bound to a node"
    priority = "" if pod.spec.priority is None else f", priority {pod.spec.priority}"
    yield "pod", f"exists, {pod.status.phase or 'without a phase'}, {on}{priority}"
    if pod.status.nominated_node_name and not pod.spec.node_name:
        yield "node", f"nominated to {pod.status.nominated_node_name}, where victims make room"
    if pod.metadata.deletion_timestamp:
        yield "pod", f"is being deleted, by {pod.metadata.deletion_timestamp}"
    for each in pod.status.conditions or ():
        if each.type == "DisruptionTarget" and each.status == "True":
            other = "" if each.reason == _BY_SCHEDULER else " (not a preemption by a scheduler)"
            at = each.last_transition_time or "an unknown time"
            yield "disrupted", f"{each.reason}{other} at {at}: {each.message}"


def _preemption_lines(key: str, events: Iterable[PodEvent]) -> Iterator[tuple[str, str]]:
    """Yield what the Events say, the newest first."""
    is_named = False
    for event in events:
        at = format_time(event.at_ns) if event.at_ns else "at an unknown time"
        match = _MESSAGE.match(event.message or "") if event.reason == PREEMPTED else None
        if match is None:
            yield "event", f"{at} {event.reason}: {event.message}"
        elif event.pod == key:
            yield "preempted", f"{at} on {match['node']} for {_preemptor_name(event, match)}"
        else:
            yield "victim", f"{at} {event.pod} on {match['node']}"
        is_named = is_named or event.reason != "Scheduled"
    if not is_named:
        yield "preempted", "no Event about a preemption is left"


def _preemptor_name(event: PodEvent, match: re.Match[str]) -> str:
    related = event.related
    if related is None or not related.name:
        return f"the {match['kind']} with UID {match['uid']}"
    return f"{related.key} (UID {match['uid']})"


def _event_document(event: PodEvent) -> EventDocument:
    return {
        "at": format_time(event.at_ns) if event.at_ns else "",
        "pod": event.pod,
        "reason": event.reason or "",
        "message": event.message or "",
    }
