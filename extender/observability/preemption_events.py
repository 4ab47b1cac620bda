"""Kubernetes Events on the preemptor and the victims that an answer names.

kube-scheduler's own Event on a victim names the preemptor, but not the reason for the choice; and
kube-scheduler may call other extenders afterwards. So these Events report only what was *named*.
The event recorder counts repeated Events, aggregates similar ones and rate-limits them, as
client-go's does.
"""

from __future__ import annotations

from typing import Final, Protocol

from extender.kube.controller_runtime.event_correlator import ObjectReference
from extender.protocol.verb_context import VerbResult
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate, PreemptionDecision

COMPONENT: Final = "reprieve"
_MAX_NAMED_VICTIMS: Final = 5


class EventSink(Protocol):
    """Records Events."""

    def normal(self, involved_object: ObjectReference, reason: str, message: str) -> None:
        """Record an Event of type Normal."""
        ...


class PreemptionEventRecorder:
    """Records Events for the pods that an answer concerns."""

    def __init__(self, sink: EventSink) -> None:
        self._recorder = sink

    def record(self, answer: VerbResult) -> None:
        """Record an Event on the preemptor and on each victim, if the answer names victims."""
        decision, chosen = answer.decision, answer.named_candidate
        if not isinstance(decision, PreemptionDecision) or chosen is None:
            return
        if not chosen.victims.pods:
            return
        why = _describe_criterion(decision)
        message = f"{_describe_victims(chosen)}; {why}"
        self._recorder.normal(_object_reference(decision.pod), "VictimsNamed", message)
        preemptor = f"{decision.pod.key} (priority {decision.pod.priority})"
        for victim in chosen.victims.pods:
            message = f"Named as a victim for pod {preemptor} on node {chosen.node}; {why}"
            self._recorder.normal(_object_reference(victim), "NamedAsVictim", message)


def _describe_victims(chosen: Candidate) -> str:
    pods = chosen.victims.pods
    named = [f"{pod.key} (priority {pod.priority})" for pod in pods[:_MAX_NAMED_VICTIMS]]
    more = [f"{len(pods) - _MAX_NAMED_VICTIMS} more"] if len(pods) > _MAX_NAMED_VICTIMS else []
    spared = f", {len(chosen.spared)} reprieved" if chosen.spared else ""
    return f"On node {chosen.node} {', '.join((*named, *more))} named as victims{spared}"


def _describe_criterion(decision: PreemptionDecision) -> str:
    if decision.decided_by is None:
        return "the only candidate"
    return f"{len(decision.candidates)} candidates, decided by {decision.decided_by}"


def _object_reference(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid)
