"""Evaluating expressions of policies for 1,000 pods in this process, as a pod event does for one.

The first is evaluated by closures; the second calls a function that only the CEL library has.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from extender.cel.pod_expression import PodExpression, compile_pod_expression
from policies.kubernetes.snapshot import Pod
from tests.bench.budgets import Figure, NamedFigures
from tests.bench.timing import Effort, latency, repeated
from tests.builders import pod

_PODS: Final = 1_000
_SOURCES: Final = {
    "closures": 'pod.labels["team"] == "a" && pod.restarts < 3 && pod.requests["cpu"] > 1000',
    "library": 'int(pod.labels["index"]) < 1000 && pod.restarts < 3 && pod.requests["cpu"] > 1000',
}


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure each expression."""
    return dict(_measured(effort))


def _measured(effort: Effort) -> NamedFigures:
    pods = [_pod(index) for index in range(_PODS)]
    for name, source in _SOURCES.items():
        expression = compile_pod_expression(source, bool)
        cost = latency(repeated(effort, partial(_timed, expression, pods))).p50 / _PODS
        what = f"one evaluation of an expression for a pod, by {name}"
        yield f"expression-{name}", Figure(what, f"{cost * 1e6:.3g} µs", cost)


def _timed(expression: PodExpression[bool], pods: list[Pod]) -> float:
    begun = time.perf_counter()
    found = sum(map(expression.evaluate, pods))
    taken = time.perf_counter() - begun
    if found != _PODS:
        raise RuntimeError(f"the expression is true for {found} pods")
    return taken


def _pod(index: int) -> Pod:
    labels = {"team": "a", "app": "web", "index": str(index)}
    return pod(f"pod-{index}", on="node", labels=labels, restarts=index % 3, cpu="2", memory="1Gi")
