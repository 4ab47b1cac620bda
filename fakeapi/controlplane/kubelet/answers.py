"""The HTTP API of a hollow kubelet, through the API server's node proxy.

    /stats/summary      statistics (``?only_cpu_and_memory=true``: without disks)
    /metrics/resource   the part of them that a metrics server reads
    /configz            the configuration, as far as it is about eviction and heartbeats
    /healthz            ok

A silent node does not respond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from extender.kube.clock import Clock
from fakeapi.controlplane.kubelet.containers import Running
from fakeapi.controlplane.kubelet.fleet import Fleet
from fakeapi.controlplane.kubelet.hosts import Host, pods_use
from fakeapi.controlplane.kubelet.outfits import NodeAnswer
from fakeapi.controlplane.kubelet.summaries import summary, summary_without_disks

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

DEFAULT_EVICTION: Final[Mapping[str, Any]] = {
    "evictionHard": {
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
    },
    "evictionPressureTransitionPeriod": "5m0s",
    "enforceNodeAllocatable": ["pods"],
}


SILENCE: Final = NodeAnswer(0, TEXT, b"")


class Answers:
    """Responds to requests for the hollow nodes."""

    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        self._fleet = fleet
        self._clock = clock

    def answer(self, node: str, path: str, query: Mapping[str, str]) -> NodeAnswer | None:
        """Return the response of a node to a GET; None if its kubelet is not simulated."""
        host, now = self._fleet.hosts.get(node), self._clock.now_ns()
        if host is None:
            return None
        if host.silent(now):
            return SILENCE
        answer = _ANSWERS.get(path.strip("/"))
        if answer is None:
            return NodeAnswer(404, TEXT, b"404 page not found\n")
        return answer(host, now, query)


def _summary(host: Host, now: int, query: Mapping[str, str]) -> NodeAnswer:
    short = query.get("only_cpu_and_memory", "").lower() in ("1", "true")
    told = summary_without_disks(host, now) if short else summary(host, now)
    return NodeAnswer(200, JSON, orjson.dumps(told, option=orjson.OPT_INDENT_2))


def _configz(host: Host, _now: int, _query: Mapping[str, str]) -> NodeAnswer:
    config = {
        "enableServer": True,
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "maxPods": host.capacity("pods"),
        **DEFAULT_EVICTION,
        **host.script.config,
    }
    return NodeAnswer(200, JSON, orjson.dumps({"kubeletconfig": config}))


def _healthz(_host: Host, _now: int, _query: Mapping[str, str]) -> NodeAnswer:
    return NodeAnswer(200, TEXT, b"ok")


def _metrics(host: Host, now: int, _query: Mapping[str, str]) -> NodeAnswer:
    lines: dict[str, list[str]] = {}
    for name, labels, value in _samples(host, now):
        listed = ",".join(f'{key}="{text}"' for key, text in labels.items())
        line = f"{name}{{{listed}}} {value:g}" if labels else f"{name} {value:g}"
        lines.setdefault(name, []).append(line)
    blocks = (
        "\n".join((f"# TYPE {name} {'counter' if name.endswith('total') else 'gauge'}", *found))
        for name, found in sorted(lines.items())
    )
    return NodeAnswer(200, METRICS, ("\n".join(blocks) + "\n").encode())


def _samples(host: Host, now: int) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Return the samples of ``/metrics/resource``: name, labels, value."""
    guests = [guest for guest in host.guests.values() if guest.life.sandbox]
    lasted = (now - host.began) / 10**9
    cpu = host.use("cpu", now) + pods_use(guests, "cpu", now)
    yield "node_cpu_usage_seconds_total", {}, cpu / 10**9 * lasted
    memory = host.use("memory", now) + pods_use(guests, "memory", now)
    yield "node_memory_working_set_bytes", {}, memory
    for guest in guests:
        meta = guest.pod.metadata
        pod = {"namespace": meta.namespace, "pod": meta.name}
        yield "pod_memory_working_set_bytes", pod, pods_use([guest], "memory", now)
        for container in guest.life.containers:
            if isinstance(container.state, Running):
                whose, since = {"container": container.spec.name, **pod}, container.state.since
                ran = (now - since) / 10**9
                used = container.use("cpu", now) / 10**9
                yield "container_cpu_usage_seconds_total", whose, used * ran
                yield "container_memory_working_set_bytes", whose, container.use("memory", now)
                yield "container_start_time_seconds", whose, since / 10**9
    yield "resource_scrape_error", {}, 0


_ANSWERS: Final[Mapping[str, Callable[[Host, int, Mapping[str, str]], NodeAnswer]]] = {
    "stats/summary": _summary,
    "metrics/resource": _metrics,
    "configz": _configz,
    "healthz": _healthz,
}
