"""Kubernetes Events on those whom an answer concerns: who goes, for whom, and why.

kube-scheduler tells victims that they were preempted, and by whom, but not why it was they; and it
may have other extenders to ask. So these Events say what was *named*. The writer counts
repetitions, combines what is similar and cuts floods off, as client-go's does.
"""

from __future__ import annotations

from typing import Final, Protocol

from extender.kube.correlator import ObjectReference
from extender.verdict import Answer
from policies.decision import Candidate, PreemptionDecision
from policies.model import Pod

COMPONENT: Final = "reprieve"
_MOST_NAMED: Final = 5


class Recorder(Protocol):
    """Tells Events."""

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        """Tell of something that is as it should be."""
        ...


class Announcer:
    """Tells what answers mean for pods."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def answered(self, answer: Answer) -> None:
        """Tell the preemptor and its victims of each other, if there are any."""
        decision, chosen = answer.decision, answer.promised
        if not isinstance(decision, PreemptionDecision) or chosen is None:
            return
        if not chosen.victims.pods:
            return
        why = _why(decision)
        self._recorder.normal(_reference(decision.pod), "VictimsNamed", f"{_goes(chosen)}; {why}")
        preemptor = f"{decision.pod.key} (priority {decision.pod.priority})"
        for victim in chosen.victims.pods:
            message = f"Named as a victim for pod {preemptor} on node {chosen.node}; {why}"
            self._recorder.normal(_reference(victim), "NamedAsVictim", message)


def _goes(chosen: Candidate) -> str:
    pods = chosen.victims.pods
    named = [f"{pod.key} (priority {pod.priority})" for pod in pods[:_MOST_NAMED]]
    more = [f"{len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
    spared = f", {len(chosen.spared)} spared" if chosen.spared else ""
    return f"On node {chosen.node} {', '.join((*named, *more))} named to go{spared}"


def _why(decision: PreemptionDecision) -> str:
    if decision.decided_by is None:
        return "the only candidate"
    return f"{len(decision.candidates)} candidates, decided by {decision.decided_by}"


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid)
