"""Clusters with a scheduler, small extenders, and short ways to read both.

A :func:`player` is an extender that answers each verb with a document, a reply, an exception, or
the result of a function; by default it passes everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from extender.kube.rest.resources import NODES, PODS
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.options import Call, ExtenderFunction, Reply
from tests.builders import Document, manifest, node_json, pod_json
from tests.builders import pdb_json as pdb_json
from tests.stage import EVENTS, Opener, Stage

X: Final = "http://x.example/scheduler"
Y: Final = "http://y.example"

SetScheduler = Opener["SchedulerStage"]
Answer = Document | list[Document] | Reply | Exception | Callable[[Document], Any]


def passing(call: Call) -> Reply:
    """Answer as an extender that passes everything."""
    asked = call.document()
    if call.verb == "preempt":
        return Reply.of({"NodeNameToMetaVictims": metas(asked)})
    if call.verb == "prioritize":
        return Reply.of([])
    if call.verb == "bind":
        return Reply.of({"Error": ""})
    return Reply.of({"NodeNames": asked["NodeNames"], "Nodes": asked["Nodes"]})


def metas(asked: Document) -> Document:
    """Return the UIDs of the offered victims of a request with UIDs or whole pods."""
    if asked["NodeNameToMetaVictims"] is not None:
        found: Document = asked["NodeNameToMetaVictims"]
        return found
    return {
        node: {**victims, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
        for node, victims in asked["NodeNameToVictims"].items()
    }


def player(**answers: Answer) -> ExtenderFunction:
    """Build an extender."""

    def answer(call: Call) -> Reply:
        result = answers.get(call.verb, ...)
        if result is ...:
            return passing(call)
        if callable(result):
            result = result(call.document())
        if isinstance(result, Exception):
            raise result
        return result if isinstance(result, Reply) else Reply.of(result)

    return answer


def victims(*uids: str, violations: int = 0) -> Document:
    """Build MetaVictims."""
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


def preempting(**nodes: Document | None) -> Document:
    """Build an ExtenderPreemptionResult."""
    return {"NodeNameToMetaVictims": nodes}


def configured(*extenders: Document, **more: Any) -> Document:
    """Build a KubeSchedulerConfiguration; extenders filter and preempt at X by default."""
    plain = {"urlPrefix": X, "filterVerb": "filter", "preemptVerb": "preempt"}
    entries = [{**plain, "nodeCacheCapable": True, **each} for each in extenders]
    return {"extenders": entries, **more}


def node(name: str, cpu: str = "2", **more: Any) -> Document:
    """Build a node."""
    return node_json(name, cpu=cpu, **more)


def pod(name: str, cpu: str = "1", *, on: str | None = None, **more: Any) -> Document:
    """Build a pod without a grace period, which is removed as soon as it is deleted."""
    spec = {"terminationGracePeriodSeconds": 0, **more.pop("spec", {})}
    return pod_json(name, on=on, cpu=cpu, spec=spec, **more)


class SchedulerStage(Stage):
    """A stage with a scheduler on it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        self.trace = cluster.scheduler.trace

    async def places(self, *, after: float = 0) -> dict[str, str]:
        """Return the node of each pod after some seconds: "→ n" if nominated, "" if it has none."""
        if after:
            await self.passes(after)
        listed = await self.all(PODS)
        return {each["metadata"]["name"]: _place(each) for each in listed}

    async def refusal(self, name: str) -> tuple[str, str]:
        """Return reason and message of a pod's condition PodScheduled, which is False."""
        found = await self.pod(name)
        conditions = found["status"]["conditions"]
        [condition] = [each for each in conditions if each["type"] == "PodScheduled"]
        assert condition["status"] == "False"
        return condition["reason"], condition["message"]

    async def messages(self, reason: str) -> list[tuple[str, str]]:
        """Return the object and the message of each Event with a reason."""
        return [event[1:] for event in await self.list_events() if event[0] == reason]

    async def events_about(self, name: str) -> list[Document]:
        """Return the Events about an object."""
        listed = await self.all(EVENTS)
        return [each for each in listed if each["involvedObject"]["name"] == name]

    async def sources(self, reason: str) -> dict[str, str]:
        """Return the reporters of Events with a reason, by the object."""
        listed = await self.all(EVENTS)
        return {
            each["involvedObject"]["name"]: each["source"]["component"]
            for each in listed
            if each["reason"] == reason
        }

    def asked(self, verb: str = "") -> list[str]:
        """Return the pods of the calls of extenders, in order."""
        return [each.pod.partition("/")[2] for each in self.trace.calls(verb)]

    def problems(self) -> list[str]:
        """Return the errors of the answers that could not be used."""
        return [each.problem for each in self.trace.refused()]

    async def run_pending_tasks(self) -> None:
        """Let watches deliver events without passing time."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def create_pod(self, document: Document) -> None:
        """Create a pod and the PriorityClass of its priority."""
        priority = document["spec"].pop("priority", 0)
        name = f"p{priority}"
        self.load(manifest("PriorityClass", name, value=priority))
        document["spec"]["priorityClassName"] = name
        await self.create(PODS, document)

    async def run(self, *objects: Document, seconds: float = 0) -> None:
        """Create pods and nodes, one after another, and let time pass."""
        for each in objects:
            resource = {"Pod": PODS, "Node": NODES}[each["kind"]]
            await self.create(resource, each)
        if seconds:
            await self.passes(seconds)


def _place(document: Mapping[str, Any]) -> str:
    node: str = document["spec"].get("nodeName", "")
    nominated = document["status"].get("nominatedNodeName", "")
    return node or (f"→ {nominated}" if nominated else "")


OLD, NEW = "1.30", "1.38"
NO_FIT = "0/2 nodes are available: 2 Insufficient cpu."


def vip(name: str = "vip", cpu: str = "2", priority: int = 100, **more: Any) -> Document:
    """Build an important pod as the API server has it."""
    return pod(name, cpu, priority=priority, **more)


FULL = (
    node("a"),
    node("b"),
    pod("a1", on="a", priority=1, started=1),
    pod("a2", on="a", priority=2, started=1),
    pod("b1", "2", on="b", priority=5, started=1),
)
"""Two full nodes; b has one pod, which is more important than both of a's."""


async def preempted(
    schedule: SetScheduler,
    extend: ExtenderFunction | None = None,
    *more: Document,
    upstream: str = NEW,
    seconds: float = 0.5,
    **entry: Any,
) -> SchedulerStage:
    """Open a stage with two full nodes and the pending pod vip."""
    return await schedule(
        *(*FULL, *more, vip()),
        extenders={X: extend} if extend else {},
        scheduler=configured(*([entry] if extend else [])),
        upstream=upstream,
        seconds=seconds,
    )
