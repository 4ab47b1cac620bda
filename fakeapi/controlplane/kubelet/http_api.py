"""The HTTP API of a hollow kubelet, through the API server's node proxy.

    /stats/summary                           statistics (``?only_cpu_and_memory=true``: without
                                             disks)
    /metrics/resource                        the part of them that a metrics server reads
    /configz                                 the configuration, as far as it is about eviction and
                                             heartbeats
    /containerLogs/NAMESPACE/POD/CONTAINER   the log of a container
    /healthz                                 ok

A silent node does not respond.

Source: pkg/kubelet/server/server.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from extender.kube.rest.clock import Clock
from fakeapi.controlplane.kubelet.container_lifecycle import ContainerLifecycle, ContainerRunning
from fakeapi.controlplane.kubelet.container_logs import (
    ContainerLogError,
    container_logs,
    parse_log_options,
    select_run,
)
from fakeapi.controlplane.kubelet.hollow_node import HollowNode, pod_usage
from fakeapi.controlplane.kubelet.hollow_nodes import HollowNodes
from fakeapi.controlplane.kubelet.scripts import KubeletResponse
from fakeapi.controlplane.kubelet.summary_stats import node_and_pods_summary, summary_without_disks

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


NO_RESPONSE: Final = KubeletResponse(0, TEXT, b"")


class KubeletApi:
    """Responds to requests for the hollow nodes."""

    def __init__(self, hollow_nodes: HollowNodes, clock: Clock) -> None:
        self._hollow_nodes = hollow_nodes
        self._clock = clock

    def respond(self, node: str, path: str, query: Mapping[str, str]) -> KubeletResponse | None:
        """Return the response of a node to a GET; None if its kubelet is not simulated."""
        hollow, now = self._hollow_nodes.nodes_by_name.get(node), self._clock.now_ns()
        if hollow is None:
            return None
        if hollow.is_silent(now):
            return NO_RESPONSE
        match path.strip("/").split("/"):
            case ["containerLogs", namespace, pod, container]:
                return _container_logs(hollow, (namespace, pod, container), now, query)
        answer = _HANDLERS.get(path.strip("/"))
        if answer is None:
            return KubeletResponse(404, TEXT, b"404 page not found\n")
        return answer(hollow, now, query)


def _container_logs(
    hollow: HollowNode, path: tuple[str, str, str], now: int, query: Mapping[str, str]
) -> KubeletResponse:
    try:
        options = parse_log_options(query, now)
        container = _find_container(hollow, *path)
        run = select_run(container, path[1], options, now)
    except ContainerLogError as error:
        return KubeletResponse(error.status, TEXT, str(error).encode())
    return KubeletResponse(200, TEXT, container_logs(run, options))


def _find_container(
    hollow: HollowNode, namespace: str, pod: str, container: str
) -> ContainerLifecycle:
    """Return a container. Raise ContainerLogError (404)."""
    for running in hollow.pods.values():
        meta = running.pod.metadata
        if (meta.namespace, meta.name) == (namespace, pod):
            for lifecycle in running.lifecycle.containers:
                if lifecycle.spec.name == container:
                    return lifecycle
            raise ContainerLogError(404, f'container "{container}" not found in pod "{pod}"')
    raise ContainerLogError(404, f'pod "{pod}" does not exist')


def _summary(hollow: HollowNode, now: int, query: Mapping[str, str]) -> KubeletResponse:
    short = query.get("only_cpu_and_memory", "").lower() in ("1", "true")
    summary = summary_without_disks(hollow, now) if short else node_and_pods_summary(hollow, now)
    return KubeletResponse(200, JSON, orjson.dumps(summary, option=orjson.OPT_INDENT_2))


def _configz(hollow: HollowNode, _now: int, _query: Mapping[str, str]) -> KubeletResponse:
    config = {
        "enableServer": True,
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "maxPods": hollow.capacity("pods"),
        **DEFAULT_EVICTION,
        **hollow.script.config,
    }
    return KubeletResponse(200, JSON, orjson.dumps({"kubeletconfig": config}))


def _healthz(_hollow: HollowNode, _now: int, _query: Mapping[str, str]) -> KubeletResponse:
    return KubeletResponse(200, TEXT, b"ok")


def _metrics(hollow: HollowNode, now: int, _query: Mapping[str, str]) -> KubeletResponse:
    lines: dict[str, list[str]] = {}
    for name, labels, value in _samples(hollow, now):
        listed = ",".join(f'{key}="{text}"' for key, text in labels.items())
        line = f"{name}{{{listed}}} {value:g}" if labels else f"{name} {value:g}"
        lines.setdefault(name, []).append(line)
    blocks = (
        "\n".join((f"# TYPE {name} {'counter' if name.endswith('total') else 'gauge'}", *found))
        for name, found in sorted(lines.items())
    )
    return KubeletResponse(200, METRICS, ("\n".join(blocks) + "\n").encode())


def _samples(hollow: HollowNode, now: int) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Return the samples of ``/metrics/resource``: name, labels, value."""
    pods = [running for running in hollow.pods.values() if running.lifecycle.sandbox]
    lasted = (now - hollow.began) / 10**9
    cpu = hollow.usage("cpu", now) + pod_usage(pods, "cpu", now)
    yield "node_cpu_usage_seconds_total", {}, cpu / 10**9 * lasted
    memory = hollow.usage("memory", now) + pod_usage(pods, "memory", now)
    yield "node_memory_working_set_bytes", {}, memory
    for running in pods:
        meta = running.pod.metadata
        pod = {"namespace": meta.namespace, "pod": meta.name}
        yield "pod_memory_working_set_bytes", pod, pod_usage([running], "memory", now)
        for container in running.lifecycle.containers:
            if isinstance(container.state, ContainerRunning):
                whose, since = {"container": container.spec.name, **pod}, container.state.since
                ran = (now - since) / 10**9
                used = container.usage("cpu", now) / 10**9
                yield "container_cpu_usage_seconds_total", whose, used * ran
                yield "container_memory_working_set_bytes", whose, container.usage("memory", now)
                yield "container_start_time_seconds", whose, since / 10**9
    yield "resource_scrape_error", {}, 0


_HANDLERS: Final[Mapping[str, Callable[[HollowNode, int, Mapping[str, str]], KubeletResponse]]] = {
    "stats/summary": _summary,
    "metrics/resource": _metrics,
    "configz": _configz,
    "healthz": _healthz,
}
