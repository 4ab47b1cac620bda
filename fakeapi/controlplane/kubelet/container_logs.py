"""The logs of containers: the texts that their scripts write, up to now or to the container's end.

    running                            the log of its present run
    terminated, or waits to restart    the log of the run that has ended
    never started                      an error with the reason for which it waits
    previous=true                      the log of the last run that ended before the one above;
                                       while it waits to restart, of the run that has ended

Lines are selected in this order: the last ``tailLines``, of them those since a time, of them the
first ``limitBytes``.

Sources: validateContainerLogStatus in pkg/kubelet/kubelet_pods.go, ReadLogs in
k8s.io/cri-client/pkg/logs/logs.go, ValidatePodLogOptions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.kube.decoders.object_meta import format_time, parse_time
from fakeapi.controlplane.kubelet.container_lifecycle import (
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
)
from fakeapi.controlplane.kubelet.scripts import LogWrite
from fakeapi.controlplane.kubelet.usage_curves import SECOND

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_UNDECODABLE: Final = '{"message": "Unable to decode query."}'
_INVALID: Final = '{"message": "Invalid request."}'
_WAITING_DETAILS: Final[Mapping[str, str]] = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class ContainerLogError(Exception):
    """The kubelet returns no log, but this text with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class PodLogOptions:
    """v1.PodLogOptions; ``since`` is the time of sinceTime or sinceSeconds, in nanoseconds."""

    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """One run of a container: what it writes, when it ``began``, and until when it has written."""

    log: tuple[LogWrite, ...]
    began: int
    until: int


def parse_log_options(query: Mapping[str, str], now: int) -> PodLogOptions:
    """Parse the options of a request. Raise ContainerLogError (400, 422)."""
    seconds, time = _integer(query, "sinceSeconds"), query.get("sinceTime")
    tail, limit = _integer(query, "tailLines"), _integer(query, "limitBytes")
    since = 0 if time is None else parse_time(time)
    if time is not None and not since:
        raise ContainerLogError(400, _UNDECODABLE)
    negative = (tail or 0) < 0 or (limit is not None and limit < 1)
    if negative or (seconds is not None and (seconds < 1 or time is not None)):
        raise ContainerLogError(422, _INVALID)
    if seconds is not None:
        since = now - seconds * SECOND
    return PodLogOptions(_flag(query, "previous"), _flag(query, "timestamps"), tail, limit, since)


def select_run(
    container: ContainerLifecycle, pod: str, options: PodLogOptions, now: int
) -> ContainerRun:
    """Return the run whose log is requested. Raise ContainerLogError (400)."""
    state, whose = container.state, f'container "{container.spec.name}" in pod "{pod}"'
    ended = state if isinstance(state, ContainerTerminated) else None
    if options.previous:
        last = ended if ended is not None and container.retry is not None else container.last
        if last is None or not last.id:
            raise ContainerLogError(400, f"previous terminated {whose} not found")
        return _ended_run(container, last)
    if isinstance(state, ContainerRunning):
        return ContainerRun(container.run.log, container.origin, now)
    if ended is None:
        detail = _WAITING_DETAILS.get(state.reason, state.reason)
        raise ContainerLogError(400, f"{whose} is waiting to start: {detail}")
    found = ended if ended.id else container.last
    if found is None or not found.id:
        raise ContainerLogError(400, f"{whose} is terminated")
    return _ended_run(container, found)


def container_logs(run: ContainerRun, options: PodLogOptions) -> bytes:
    """Return the log of a run, as its options select it."""
    lines = tuple(_timed_lines(run))
    tail = len(lines) if options.tail_lines is None else options.tail_lines
    selected = (
        f"{_timestamp(at)} {line}\n" if options.timestamps else f"{line}\n"
        for at, line in lines[max(0, len(lines) - tail) :]
        if at >= options.since
    )
    return "".join(selected).encode(errors="replace")[: options.limit_bytes]


def _timed_lines(run: ContainerRun) -> Iterable[tuple[int, str]]:
    for write in run.log:
        at = run.began + write.after
        if at <= run.until:
            yield from ((at, line) for line in write.text.removesuffix("\n").split("\n"))


def _ended_run(container: ContainerLifecycle, end: ContainerTerminated) -> ContainerRun:
    """Return a run that has ended; a container's last one is that before its restart."""
    restarts = container.restarts if end is container.state else container.restarts - 1
    return ContainerRun(container.script.run(max(0, restarts)).log, end.began, end.ended)


def _timestamp(at: int) -> str:
    """Format a time as RFC 3339 with nine digits of a second."""
    return f"{format_time(at)[:-1]}.{at % SECOND:09}Z"


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not _INTEGER.fullmatch(text):
        raise ContainerLogError(400, _UNDECODABLE)
    return int(text)


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("false", "0")
