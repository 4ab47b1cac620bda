"""Relief of nodes: cordons them, evicts pods through the Eviction API, and reports each action.

    201            the pod terminates
    429            a disruption budget forbids the eviction for now: reported, and retried after the
                   time that the server requests, or five seconds
    404, 409       the pod is gone, or its name belongs to another pod
    anything else  reported; retried in the next round

The rate limit applies to evictions from all nodes together. No pod is evicted from a node that
could not be cordoned, because its replacement could be scheduled there again. Actions are recorded
as Events of the nodes and of the pods.

Source of the calls: pkg/drain of kubectl; the eviction subresource of pods (policy/v1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import msgspec

from extender.eviction.advise.rounds import ObservationRound
from extender.kube.controller_runtime.event_correlator import ObjectReference
from extender.kube.controller_runtime.event_recorder import EventRecorder
from extender.kube.decoders.node_hosts import AdvisedNode
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import NODES, PODS
from extender.kube.rest.transport import TransportError
from policies.eviction.pods import EvictablePod
from policies.eviction.proactive_eviction import (
    NodePodFacts,
    Relief,
    ReliefLimits,
    ReliefStep,
    plan_relief,
    relief_steps,
)
from policies.kubernetes.duration import format_duration

COMPONENT: Final = "reprieve-advisor"
RETRY_SECONDS: Final = 5.0

_SECOND: Final = 10**9
_BUSY: Final = 429
_GONE: Final = (404, 409)
_CORDON: Final = b'{"spec":{"unschedulable":true}}'


class ActionResult(Enum):
    """The result of an action."""

    PLANNED = "planned"
    DONE = "done"
    BLOCKED = "blocked"
    GONE = "gone"
    FAILED = "failed"
    REFRAINED = "refrained"


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a relief, and its result."""

    step: ReliefStep
    result: ActionResult
    message: str = ""

    def __str__(self) -> str:
        step, pod = self.step, self.step.pod
        what = f"cordon {step.relief.node}" if pod is None else f"evict {pod.key}"
        where = "" if pod is None else f" from {step.relief.node}"
        message = f": {self.message}" if self.message else ""
        return f"{_VERBS[self.result].format(what)}{where} ({relief_reason(step.relief)}){message}"


_VERBS: Final[Mapping[ActionResult, str]] = {
    ActionResult.PLANNED: "would {}",
    ActionResult.DONE: "did {}",
    ActionResult.BLOCKED: "may not yet {}",
    ActionResult.GONE: "need not {}",
    ActionResult.FAILED: "could not {}",
    ActionResult.REFRAINED: "did not {}",
}


def relief_reason(relief: Relief) -> str:
    """Return the reason of a relief."""
    forecast = relief.cause
    left = forecast.met_in_ns or 0
    when = f"in {format_duration(left // _SECOND * _SECOND)}" if left >= _SECOND else "now"
    return f"{forecast.threshold} {when}"


def planned_actions(reliefs: Sequence[Relief]) -> list[Action]:
    """Return the actions that would be taken."""
    planned = [Action(step, ActionResult.PLANNED) for step in relief_steps(reliefs)]
    return [*planned, *skipped_actions(reliefs)]


def skipped_actions(reliefs: Sequence[Relief]) -> list[Action]:
    """Return the nodes that are left alone, as actions."""
    why = "as many nodes are cordoned as --max-nodes allows"
    return [
        Action(ReliefStep(each), ActionResult.REFRAINED, why) for each in reliefs if each.skipped
    ]


ReportAction = Callable[[Action], None]


class Executor:
    """Relieves nodes, with at most ``per_minute`` evictions; ``report`` reports each action.

    It keeps track of its actions: the nodes that it has cordoned (and will not cordon again if they
    are uncordoned), the pods that it has evicted, and the pods whose eviction is blocked.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        recorder: EventRecorder,
        per_minute: float,
        report: ReportAction,
    ) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._gap = 60 / per_minute
        self._report = report
        self._cordoned: set[str] = set()
        self._evicted: dict[str, str] = {}
        self._relieved_ns: dict[str, int] = {}
        self._blocked: dict[str, tuple[float, ReliefStep]] = {}
        self._next = clock.monotonic()

    async def execute(
        self,
        observed: ObservationRound,
        nodes: Mapping[str, AdvisedNode],
        limits: ReliefLimits,
        until: float,
    ) -> list[Action]:
        """Relieve the nodes that need it, as far as the rate allows before ``until`` (monotonic).

        Pods whose eviction is blocked are skipped, and reported again only when they are retried.
        """
        left = replace(limits, max_nodes=max(0, limits.max_nodes - len(self._cordoned)))
        reliefs = plan_relief(observed.forecasts, self._pod_facts(observed), left)
        actions, uncordoned = skipped_actions(reliefs), set[str]()
        for action in actions:
            self._report(action)
        for step in relief_steps(reliefs):
            node = step.relief.node
            if step.pod is None:
                action = await self._cordon(step, nodes.get(node, AdvisedNode(node)))
                uncordoned.update({node} if action.result is ActionResult.FAILED else ())
            elif node in uncordoned or self._is_backing_off(step.pod):
                continue
            elif not await self._wait_for_rate(until):
                break
            else:
                action = await self._evict(step, step.pod)
            actions.append(action)
        return actions

    async def retry_blocked(self, until: float) -> list[Action]:
        """Retry blocked evictions, until all have succeeded or it is ``until`` (monotonic)."""
        actions = []
        while self._blocked:
            at, step = min(self._blocked.values(), key=lambda each: each[0])
            at = max(at, self._next)
            if at > until or step.pod is None:
                break
            await self._clock.sleep(at - self._clock.monotonic())
            await self._wait_for_rate(until)
            actions.append(await self._evict(step, step.pod))
        return actions

    def _pod_facts(self, observed: ObservationRound) -> dict[str, NodePodFacts]:
        """Add actions that the cache may not have observed yet."""
        self._record_terminated(observed)
        return {
            node: replace(
                facts,
                terminating_pods=facts.terminating_pods | self._evicted.keys(),
                cordoned=facts.cordoned or node in self._cordoned,
                relieved_ns=self._relieved_ns.get(node, facts.relieved_ns),
            )
            for node, facts in observed.pod_facts.items()
        }

    def _record_terminated(self, observed: ObservationRound) -> None:
        """Record up to which time measurements may include evicted pods."""
        for forecast in observed.forecasts:
            sample = forecast.sync.input
            present = {pod.uid for pod in sample.pods}
            evicted = [uid for uid, node in self._evicted.items() if node == forecast.node]
            if evicted:
                self._relieved_ns[forecast.node] = sample.now_ns
            for uid in evicted:
                if uid not in present:
                    del self._evicted[uid]

    def _is_backing_off(self, pod: EvictablePod) -> bool:
        at, _ = self._blocked.get(pod.uid, (0.0, None))
        return self._clock.monotonic() < at

    async def _wait_for_rate(self, until: float) -> bool:
        """Wait until the rate allows an eviction; return False if that is after ``until``."""
        if self._next > until:
            return False
        await self._clock.sleep(self._next - self._clock.monotonic())
        self._next = self._clock.monotonic() + self._gap
        return True

    async def _cordon(self, step: ReliefStep, node: AdvisedNode) -> Action:
        try:
            await self._client.patch(NODES.object(node.name), PatchType.MERGE, _CORDON, bytes)
        except (ApiError, TransportError) as error:
            return self._reported(Action(step, ActionResult.FAILED, str(error)))
        self._cordoned.add(node.name)
        about = ObjectReference("v1", "Node", "", node.name, node.uid)
        self._recorder.normal(about, "Cordoned", f"Cordoned: {relief_reason(step.relief)}")
        return self._reported(Action(step, ActionResult.DONE))

    async def _evict(self, step: ReliefStep, pod: EvictablePod) -> Action:
        about = ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid)
        self._blocked.pop(pod.uid, None)
        try:
            path = PODS.object(pod.name, pod.namespace).subresource("eviction")
            await self._client.create(path, _eviction(pod), bytes)
        except ApiError as error:
            return self._reported(self._rejected(step, pod, about, error))
        except TransportError as error:
            return self._reported(Action(step, ActionResult.FAILED, str(error)))
        self._evicted[pod.uid] = step.relief.node
        message = f"Evicted from {step.relief.node}: {relief_reason(step.relief)}"
        self._recorder.normal(about, "EvictedAhead", message)
        return self._reported(Action(step, ActionResult.DONE))

    def _rejected(
        self, step: ReliefStep, pod: EvictablePod, about: ObjectReference, error: ApiError
    ) -> Action:
        if error.status in _GONE:
            return Action(step, ActionResult.GONE, error.message)
        if error.status != _BUSY:
            return Action(step, ActionResult.FAILED, str(error))
        later = max(error.retry_after or 0.0, RETRY_SECONDS)
        self._blocked[pod.uid] = (self._clock.monotonic() + later, step)
        self._recorder.warning(about, "EvictionBlocked", error.message)
        return Action(step, ActionResult.BLOCKED, f"{error.message} Tried again in {later:g} s.")

    def _reported(self, action: Action) -> Action:
        self._report(action)
        return action


def _eviction(pod: EvictablePod) -> bytes:
    """Return an Eviction of this pod with its UID as precondition."""
    return msgspec.json.encode(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
    )
