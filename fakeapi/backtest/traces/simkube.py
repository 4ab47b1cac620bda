"""SimKube's traces: Kubernetes objects as they were applied and deleted over time.

A ``.sktrace`` is one msgpack document, ``{version, config, events, index, pod_lifecycles}``; its
test data is the same as JSON. It is no list of jobs, so jobs are derived:

- A workload for whose pods the trace has lifecycles becomes a job per pod, from the pod's start to
  its end.
- Any other workload becomes a job of all its replicas, from the time when it was applied to the
  time when it was deleted, or scaled down, or the trace ends. Scaling up adds a job of the new
  replicas; scaling down ends the newest ones first. A changed pod template starts all anew.

The document is read as a whole, so this is the one format that needs memory for the trace.

Source: github.com/acrlabs/simkube, sk-core/src/trace (version 2 of the format), sk-core/src/k8s.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.kube.decoders.core_v1_types import PodSpecV1, PodStatusV1
from extender.kube.decoders.pod_resources import default_requests, pod_resources
from fakeapi.backtest.traces.node_lists import resource_amounts
from fakeapi.backtest.traces.rows import LONGEST_TIME_NS, dns_label
from fakeapi.backtest.traces.trace import HIGHEST_PRIORITY, TraceError, TraceJob, TraceRow
from policies.kubernetes.integers import INT32_MAX, INT64_MAX
from policies.kubernetes.pod_requests import pod_requests
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.releases import NEWEST

ASSUMPTIONS: Final = (
    "A workload with lifecycles of pods is a job for each pod, submitted when the pod started.",
    "Any other workload is a job of its replicas, from apply to scale-down, deletion or the end.",
    "Pods alone and those of Jobs and CronJobs lose all work when stopped, others none.",
    "A pod whose template names a priority class that is not in the trace has priority 0.",
    "Of the constraints of pods, only nodeSelector counts.",
    "A job is named after the kind and name of its workload, and numbered.",
)

_VERSION: Final = 2
_LARGEST: Final = 256 * 2**20
_GZIP: Final = b"\x1f\x8b"
_MOST_PODS: Final = 150_000
_LAST_SECOND: Final = LONGEST_TIME_NS // NANOS
_LONGEST_LABEL: Final = 63
_SHOWN: Final = 200
_SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_BATCH: Final = ("Job", "CronJob", "Pod")
_KINDS: Final = (*_BATCH, "Deployment", "ReplicaSet", "StatefulSet")


_Key = tuple[str, str]
"""A workload as in pod_lifecycles: ``apps/v1.Deployment`` and ``namespace/name``."""


class _Meta(msgspec.Struct):
    name: str
    namespace: str = "default"


class _Header(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Meta
    value: int | None = None  # of a PriorityClass

    def key(self) -> _Key:
        return (
            f"{self.api_version}.{self.kind}",
            f"{self.metadata.namespace}/{self.metadata.name}",
        )


class _Pod(msgspec.Struct):
    spec: PodSpecV1


class _JobSpec(msgspec.Struct):
    template: _Pod
    parallelism: int = 1


class _JobTemplate(msgspec.Struct):
    spec: _JobSpec


class _WorkloadSpec(msgspec.Struct, rename="camel"):
    template: _Pod | None = None
    job_template: _JobTemplate | None = None
    replicas: int = 1
    parallelism: int = 1


class _Workload(msgspec.Struct):
    spec: _WorkloadSpec


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[msgspec.Raw]
    deleted_objs: list[msgspec.Raw]


class _File(msgspec.Struct):
    version: int
    events: list[_Event]
    pod_lifecycles: msgspec.Raw


_Lifecycle = str | dict[str, int | list[int]]
"""``Empty``, ``{"Running": start}`` or ``{"Finished": [start, end]}``, in seconds."""
_Lifecycles = dict[_Key, dict[int, list[_Lifecycle]]]
"""By the hash of the pod template."""


class _ObjectError(ValueError):
    """An object is left out; the text is the reason."""


@dataclass(frozen=True, slots=True)
class SimkubeJobs:
    """The jobs of a SimKube trace; the line of a row is the number of the object in the file."""

    path: Path

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    def read(self) -> Iterator[TraceRow]:
        """Yield a row for each job and each object that is left out. Raise TraceError."""
        data = _contents(self.path)
        is_json = data.lstrip()[:1] == b"{"
        decode = msgspec.json.decode if is_json else msgspec.msgpack.decode
        try:
            file = decode(data, type=_File)
            # JSON has no keys that are pairs, so a trace in JSON has no lifecycles.
            lifecycles = {} if is_json else decode(file.pod_lifecycles, type=_Lifecycles)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0][:_SHOWN]
            expected = f"expected a SimKube trace of version {_VERSION}"
            raise TraceError(f"{self.path}: {expected}: {reason}") from None
        if file.version != _VERSION:
            raise TraceError(f"{self.path}: version: expected {_VERSION}, found {file.version}")
        yield from _Reader(decode, file.events, lifecycles).rows()


@dataclass(frozen=True, slots=True)
class _Template:
    """What the pods of a workload have in common."""

    kind: str
    name: str
    tenant: str
    priority: int
    requests: Mapping[str, int]
    node_labels: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _Replicas:
    """Pods that were started at the same time."""

    line: int
    start: int
    pods: int


@dataclass(slots=True)
class _RunningWorkload:
    template: _Template
    replicas: list[_Replicas] = field(default_factory=list)


class _Reader:
    def __init__(self, decode: Any, events: Sequence[_Event], lifecycles: _Lifecycles) -> None:
        self._decode = decode
        self._events = events
        self._end = max((*_times(lifecycles), *(event.ts for event in events[-1:])), default=0)
        self._lifecycles = lifecycles
        self._priorities = dict(_SYSTEM_PRIORITIES)
        self._running: dict[_Key, _RunningWorkload] = {}
        self._with_lifecycles: set[_Key] = set()
        self._line = self._jobs = 0

    def rows(self) -> Iterator[TraceRow]:
        now = 0
        for event in self._events:
            if not now <= event.ts <= _LAST_SECOND:
                yield TraceRow(self._line, "an event that is earlier than the last one")
                continue
            now = event.ts
            for raw in event.applied_objs:
                yield from self._object_rows(raw, now, self._apply)
            for raw in event.deleted_objs:
                yield from self._object_rows(raw, now, self._delete)
        for key in self._running:
            yield from self._scale_down(key, 0, max(now, self._end))
        for _ in self._lifecycles.keys() - self._with_lifecycles:
            yield TraceRow(self._line, "pods whose workload is not in the trace")

    def _object_rows(self, raw: msgspec.Raw, now: int, handle: Any) -> Iterator[TraceRow]:
        self._line += 1
        try:
            yield from handle(self._decode(raw, type=_Header), raw, now)
        except _ObjectError as error:
            yield TraceRow(self._line, str(error))
        except (ValueError, RecursionError):
            yield TraceRow(self._line, "not a valid object")

    def _apply(self, header: _Header, raw: msgspec.Raw, now: int) -> Iterator[TraceRow]:
        if header.kind == "PriorityClass":
            self._priorities[header.metadata.name] = header.value or 0
            return
        if header.kind not in _KINDS:
            raise _ObjectError("kind: not one whose pods are derived")
        key = header.key()
        spec, replicas = self._pods(header.kind, raw)
        template = self._template(header, spec)
        if key in self._lifecycles:
            if key not in self._with_lifecycles:
                self._with_lifecycles.add(key)
                yield from self._pod_rows(template, self._lifecycles[key])
        elif header.kind == "CronJob":
            raise _ObjectError("a CronJob without lifecycles of its pods")
        else:
            yield from self._scale(key, template, replicas, now)

    def _delete(self, header: _Header, _raw: msgspec.Raw, now: int) -> Iterator[TraceRow]:
        if header.key() in self._running:
            yield from self._scale_down(header.key(), 0, now)
            del self._running[header.key()]

    def _pods(self, kind: str, raw: msgspec.Raw) -> tuple[PodSpecV1, int]:
        if kind == "Pod":
            return self._decode(raw, type=_Pod).spec, 1
        spec = self._decode(raw, type=_Workload).spec
        template = spec.job_template.spec.template if spec.job_template else spec.template
        replicas = spec.parallelism if kind == "Job" else spec.replicas
        if template is None or not 0 <= replicas <= _MOST_PODS:
            raise _ObjectError(f"expected a pod template and at most {_MOST_PODS} replicas")
        return template.spec, replicas

    def _template(self, header: _Header, spec: PodSpecV1) -> _Template:
        default_requests(spec)
        priority = spec.priority
        if priority is None:
            priority = self._priorities.get(spec.priorityClassName or "", 0)
        is_system = priority in _SYSTEM_PRIORITIES.values()
        if not (is_system or -INT32_MAX - 1 <= priority <= HIGHEST_PRIORITY):
            raise _ObjectError("priority: not one that a PriorityClass may have")
        name = dns_label(f"{header.kind}-{header.metadata.name}")
        tenant = dns_label(header.metadata.namespace)
        requests = resource_amounts(pod_requests(pod_resources(spec, PodStatusV1()), NEWEST))
        if not all(0 < amount <= INT64_MAX for amount in requests.values()):
            raise _ObjectError("requests: negative or too large")
        labels = {key: (value,) for key, value in (spec.nodeSelector or {}).items()}
        return _Template(header.kind, name, tenant or "default", priority, requests, labels)

    def _pod_rows(
        self, template: _Template, lifecycles: Mapping[int, list[_Lifecycle]]
    ) -> Iterator[TraceRow]:
        for lifecycle in (each for pods in lifecycles.values() for each in pods):
            match lifecycle:
                case {"Finished": [int(start), int(end)]}:
                    pass
                case {"Running": int(start)}:
                    end = self._end
                case _:
                    yield TraceRow(self._line, "a pod that never started")
                    continue
            if 0 <= start <= end <= _LAST_SECOND:
                yield self._job_row(template, _Replicas(self._line, start, 1), end)
            else:
                yield TraceRow(self._line, "a pod that ended before it started")

    def _scale(self, key: _Key, template: _Template, replicas: int, now: int) -> Iterator[TraceRow]:
        running = self._running.setdefault(key, _RunningWorkload(template))
        if running.template != template:
            yield from self._scale_down(key, 0, now)
            running.template = template
        yield from self._scale_down(key, replicas, now)
        missing = replicas - sum(each.pods for each in running.replicas)
        if missing:
            running.replicas.append(_Replicas(self._line, now, missing))

    def _scale_down(self, key: _Key, replicas: int, now: int) -> Iterator[TraceRow]:
        """End the newest pods of a workload until it has at most ``replicas``."""
        running = self._running[key]
        surplus = sum(each.pods for each in running.replicas) - replicas
        while surplus > 0:
            newest = running.replicas[-1]
            ended = min(surplus, newest.pods)
            ending = _Replicas(newest.line, newest.start, ended)
            yield self._job_row(running.template, ending, now)
            surplus -= ended
            newest.pods -= ended
            if not newest.pods:
                running.replicas.pop()

    def _job_row(self, template: _Template, replicas: _Replicas, end: int) -> TraceRow:
        self._jobs += 1
        suffix = f"-{self._jobs}"
        job = TraceJob(
            name=template.name[: _LONGEST_LABEL - len(suffix)] + suffix,
            tenant=template.tenant,
            priority=template.priority,
            submitted_ns=replicas.start * NANOS,
            run_ns=max(end - replicas.start, 1) * NANOS,
            requests=template.requests,
            pods=replicas.pods,
            node_labels=template.node_labels,
            checkpoint_ns=None if template.kind in _BATCH else 0,
        )
        return TraceRow(replicas.line, job)


def _times(lifecycles: _Lifecycles) -> Iterator[int]:
    """Yield the times at which pods started and ended."""
    for pods in (pods for templates in lifecycles.values() for pods in templates.values()):
        for lifecycle in pods:
            for times in lifecycle.values() if isinstance(lifecycle, dict) else ():
                for time in times if isinstance(times, list) else (times,):
                    if time <= _LAST_SECOND:
                        yield time


def _contents(path: Path) -> bytes:
    if not path.is_file():
        raise TraceError(f"{path}: expected a file")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if data.startswith(_GZIP):
            with gzip.open(path) as file:
                data = file.read(_LARGEST + 1)
    except (EOFError, zlib.error) as error:
        raise TraceError(f"{path}: damaged gzip data: {error}") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise TraceError(f"{path}: expected at most {_LARGEST} bytes")
    return data
