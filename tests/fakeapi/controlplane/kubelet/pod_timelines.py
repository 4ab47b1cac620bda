"""Pods simulated without any server, with one line for each change of their status.

    1    Running  ready    a:run b:run

means: a second after it was admitted the pod is Running and ready, both its containers run. A
container is shown by its state (``run``; ``wait`` or ``stop`` with a short reason or the exit
code), an asterisk if it is ready, and how often it has been restarted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fakeapi.apiserver.serving.virtual_clock import START_NS
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle, Termination
from fakeapi.controlplane.kubelet.pod_status import (
    Document,
    PodIPs,
    WrittenConditions,
    status_patch,
)
from fakeapi.controlplane.kubelet.script_parser import parse_pod_script
from fakeapi.controlplane.kubelet.types import KubeletPod, decode_pod
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from tests.builders import encoded, pod_json

_SHORT: Final = {
    "ContainerCreating": "new",
    "PodInitializing": "init",
    "CrashLoopBackOff": "backoff",
    "ImagePullBackOff": "pull",
}

PLACE: Final = PodIPs("172.16.0.2", "10.0.0.2")


def container(name: str, **fields: Any) -> Document:
    """Build a container."""
    return {"name": name, "image": f"{name}:1", **fields}


def pod_of(*containers: Document, **spec: Any) -> KubeletPod:
    """Build a pod as a kubelet reads it."""
    metadata, spec = {"generation": 1}, {"containers": list(containers), **spec}
    return decoded(
        pod_json("p", on="n", uid="u", metadata=metadata, spec=spec, status={"phase": ""})
    )


def decoded(document: Document) -> KubeletPod:
    """Decode a pod as a kubelet does."""
    return decode_pod(msgspec.Raw(encoded(document))).object


def admitted(pod: KubeletPod, script: str = "{}") -> PodLifecycle:
    """Admit a pod at the beginning of time."""
    return PodLifecycle.admit(pod, parse_pod_script(script), START_NS)


def seconds(number: float) -> int:
    """Return a time of the simulation in nanoseconds since the epoch."""
    return START_NS + round(number * SECOND)


class Timeline:
    """A pod's lifecycle, and the statuses that a kubelet would have written."""

    def __init__(self, life: PodLifecycle) -> None:
        self.life = life
        self.report = WrittenConditions()

    def status(self, at: float) -> Document:
        """Return the status that would be written at a time."""
        self.life.advance(seconds(at))
        status: Document = status_patch(self.life, self.report, PLACE, seconds(at))["status"]
        return status

    def until(self, end: float, deleted: float | None = None, grace: float = 30) -> list[str]:
        """Return the lines until a time; the pod is deleted at another one, with a grace period."""
        return list(self._lines(end, deleted, grace))

    def _lines(self, end: float, deleted: float | None, grace: float) -> Iterator[str]:
        now: int | None = START_NS
        while now is not None and now <= seconds(end):
            if deleted is not None and now == seconds(deleted):
                self.life.advance(now)
                self.life.terminate(Termination(now, now + round(grace * SECOND)))
            at = (now - START_NS) / SECOND
            yield f"{at:g} {_line(self.status(at))}"
            after = self.life.next_change(now)
            waits = deleted is not None and now < seconds(deleted)
            moments = [
                m for m in (after, seconds(deleted or 0) if waits else None) if m is not None
            ]
            now = min(moments, default=None)


def _line(status: Document) -> str:
    listed = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    [ready] = [c["status"] for c in status["conditions"] if c["type"] == "Ready"]
    parts = [status["phase"], *(["ready"] if ready == "True" else []), *map(_container, listed)]
    return " ".join(parts)


def _container(status: Document) -> str:
    [(kind, state)] = status["state"].items()
    how = "run"
    if kind == "waiting":
        how = f"wait({_SHORT[state['reason']]})"
    elif kind == "terminated":
        how = f"stop({state['exitCode']})"
    count = str(status["restartCount"] or "")
    return f"{status['name']}:{how}{'*' if status['ready'] else ''}{count}"
