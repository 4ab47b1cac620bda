"""Printers of workloads: replica counts, progress, and autoscaling metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.printers.human_readable import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    RowPrinter,
    age,
    at,
    containers,
    deleted,
    human_duration,
    labels,
    name,
    number,
    objects,
    parse_time,
    selector,
    since,
    text,
    true_conditions,
)

Document = Mapping[str, Any]

_TEMPLATE: Final = ("spec", "template", "spec")
_JOB_ENDS: Final = ("Complete", "Failed")
_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
_MAX_METRICS: Final = 2
_RESOURCE_METRICS: Final = ("Resource", "ContainerResource")
_VALUE_METRICS: Final = ("External", "Object")
_METRICS: Final = (*_RESOURCE_METRICS, *_VALUE_METRICS, "Pods")


def _replicas(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        number(document, "spec", "replicas"),
        number(document, "status", "replicas"),
        number(document, "status", "readyReplicas"),
        age(document, now),
        *containers(document, *_TEMPLATE),
    ]


def _replication_controller(document: Document, now: int) -> list[Cell]:
    return [*_replicas(document, now), labels(document, "spec", "selector")]


def _replica_set(document: Document, now: int) -> list[Cell]:
    return [*_replicas(document, now), selector(document, "spec", "selector")]


def _ready_of_desired(document: Document) -> str:
    return f"{number(document, 'status', 'readyReplicas')}/{number(document, 'spec', 'replicas')}"


def _deployment(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        _ready_of_desired(document),
        number(document, "status", "updatedReplicas"),
        number(document, "status", "availableReplicas"),
        age(document, now),
        *containers(document, *_TEMPLATE),
        selector(document, "spec", "selector", absent=""),
    ]


def _stateful_set(document: Document, now: int) -> list[Cell]:
    row = [name(document), _ready_of_desired(document), age(document, now)]
    return [*row, *containers(document, *_TEMPLATE)]


def _daemon_set(document: Document, now: int) -> list[Cell]:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(document),
        *(number(document, "status", count) for count in counts),
        labels(document, *_TEMPLATE, "nodeSelector"),
        age(document, now),
        *containers(document, *_TEMPLATE),
        selector(document, "spec", "selector"),
    ]


def _job(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        _job_status(document),
        _completions(document),
        _job_duration(document, now),
        age(document, now),
        *containers(document, *_TEMPLATE),
        selector(document, "spec", "selector"),
    ]


def _job_status(document: Document) -> str:
    holding = true_conditions(document)
    ended = next((end for end in _JOB_ENDS if end in holding), "")
    if ended or deleted(document):
        return ended or "Terminating"
    return next((state for state in _JOB_STATES if state in holding), "Running")


def _completions(document: Document) -> str:
    succeeded = number(document, "status", "succeeded")
    if at(document, "spec", "completions") is not None:
        return f"{succeeded}/{number(document, 'spec', 'completions')}"
    parallelism = number(document, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(document: Document, now: int) -> str:
    start = parse_time(at(document, "status", "startTime"))
    if start is None:
        return ""
    end = parse_time(at(document, "status", "completionTime"))
    return human_duration((now if end is None else end) - start)


def _cron_job(document: Document, now: int) -> list[Cell]:
    last = at(document, "status", "lastScheduleTime")
    suspended = at(document, "spec", "suspend")
    return [
        name(document),
        text(document, "spec", "schedule"),
        text(document, "spec", "timeZone", absent=NONE),
        UNSET if suspended is None else str(suspended),
        len(objects(document, "status", "active")),
        NONE if last is None else since(last, now),
        age(document, now),
        *containers(document, "spec", "jobTemplate", *_TEMPLATE),
        selector(document, "spec", "jobTemplate", "spec", "selector"),
    ]


def _controller_revision(document: Document, now: int) -> list[Cell]:
    owner = next(
        (o for o in objects(document, "metadata", "ownerReferences") if o.get("controller")), None
    )
    controller = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = ".".join(part for part in (text(owner, "kind"), group) if part)
        controller = f"{kind.lower()}/{text(owner, 'name')}"
    return [name(document), controller, number(document, "revision"), age(document, now)]


def _autoscaler(document: Document, now: int) -> list[Cell]:
    target = at(document, "spec", "scaleTargetRef")
    return [
        name(document),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _targets(document),
        text(document, "spec", "minReplicas", absent=UNSET),
        number(document, "spec", "maxReplicas"),
        number(document, "status", "currentReplicas"),
        age(document, now),
    ]


def _targets(document: Document) -> str:
    if (at_v1 := at(document, "spec", "targetCPUUtilizationPercentage")) is not None:
        current = _percent(at(document, "status"), "currentCPUUtilizationPercentage", UNKNOWN)
        return f"cpu: {current}/{at_v1}%"
    current_metrics = objects(document, "status", "currentMetrics")
    targets = []
    for index, metric in enumerate(objects(document, "spec", "metrics")):
        targets.append(
            _metric(metric, current_metrics[index] if index < len(current_metrics) else {})
        )
    if not targets:
        return NONE
    more = f" + {len(targets) - _MAX_METRICS} more..." if len(targets) > _MAX_METRICS else ""
    return ", ".join(targets[:_MAX_METRICS]) + more


def _metric(metric: Document, status: Document) -> str:
    """Return a metric's current and target value; a share of the request is a percentage."""
    kind = text(metric, "type")
    if kind not in _METRICS:
        return "<unknown type>"
    part = kind[:1].lower() + kind[1:]
    target, current = at(metric, part, "target"), at(status, part, "current")
    of_resource = kind in _RESOURCE_METRICS
    subject = f"{text(metric, part, 'name')}: " if of_resource else ""
    if average := text(target, "averageValue"):
        suffix = " (avg)" if kind in _VALUE_METRICS else ""
        return f"{subject}{text(current, 'averageValue', absent=UNKNOWN)}/{average}{suffix}"
    if of_resource:
        target_value = _percent(target, "averageUtilization", "<auto>")
        return f"{subject}{_percent(current, 'averageUtilization', UNKNOWN)}/{target_value}"
    return f"{text(current, 'value', absent=UNKNOWN)}/{text(target, 'value')}"


def _percent(document: Any, field: str, absent: str) -> str:
    share = text(document, field)
    return f"{share}%" if share else absent


def _scale(document: Document, now: int) -> list[Cell]:
    spec, status = number(document, "spec", "replicas"), number(document, "status", "replicas")
    return [name(document), spec, status, age(document, now)]


PRINTERS: Mapping[str, RowPrinter] = {
    "ReplicationController": _replication_controller,
    "ReplicaSet.apps": _replica_set,
    "Deployment.apps": _deployment,
    "StatefulSet.apps": _stateful_set,
    "DaemonSet.apps": _daemon_set,
    "ControllerRevision.apps": _controller_revision,
    "Job.batch": _job,
    "CronJob.batch": _cron_job,
    "HorizontalPodAutoscaler.autoscaling": _autoscaler,
    "Scale.autoscaling": _scale,
}
