"""A synthetic trace with the columns of openb, and distributions like openb's.

It replaces real traces, whose licences do not allow that they are shipped. The same numbers give
the same trace. Arrivals are a Poisson process under the condition of its number of pods, with a
rate that doubles between night and noon. Run times are log-normal and are scaled so that all pods
together request ``load`` of the cluster's GPUs over the whole time: real openb never requests more
than about 70 of its 6,200 GPUs at once, so that on its own cluster nothing is ever preempted.

The address of a synthetic trace is ``synthetic``, or with parameters
``synthetic:nodes=100,pods=1000,days=3,seed=1,load=0.8``.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from fakeapi.backtest.traces.node_lists import openb_node
from fakeapi.backtest.traces.openb import COLUMNS, NODE_COLUMNS, openb_job
from fakeapi.backtest.traces.rows import Row, job_of_row
from fakeapi.backtest.traces.trace import TraceNode, TraceRow

ASSUMPTIONS: Final = ("Pods are drawn independently, from distributions like those of openb.",)

_DAY: Final = 86_400
_AMPLITUDE: Final = 1 / 3
"""Of the daily wave of the rate; the rate at noon is then twice that at midnight."""
_CALIBRATED: Final = 4000
_LARGEST_SCALE: Final = 2.0**20


class _NodeShape(NamedTuple):
    weight: int
    cpu_milli: int
    memory_mib: int
    gpu: int
    model: str


class _PodShape(NamedTuple):
    weight: int
    qos: str
    num_gpu: int
    gpu_milli: int
    cpu_milli: int
    memory_mib: int


class _RunTime(NamedTuple):
    """The mean and deviation of the logarithm of seconds."""

    mean: float
    deviation: float


# Counts in openb_node_list_all_node.csv; shapes of fewer than 20 nodes are left out, and nodes
# without GPUs are of two shapes instead of twelve.
_NODES: Final = (
    _NodeShape(549, 96_000, 393_216, 8, "G2"),
    _NodeShape(387, 104_000, 524_288, 2, "T4"),
    _NodeShape(165, 32_000, 262_144, 0, ""),
    _NodeShape(145, 96_000, 524_288, 0, ""),
    _NodeShape(107, 16_000, 122_880, 2, "P100"),
    _NodeShape(39, 128_000, 786_432, 8, "G3"),
    _NodeShape(28, 32_000, 131_072, 4, "V100M16"),
    _NodeShape(22, 64_000, 262_144, 2, "P100"),
    _NodeShape(21, 96_000, 786_432, 8, "V100M32"),
)
# Counts in openb_pod_list_default.csv by QoS, GPUs and share, with the median of CPU and memory;
# shares are rounded to four values, Guaranteed (7 pods) counts as LS.
_PODS: Final = (
    _PodShape(3206, "LS", 1, 1000, 11_400, 49_152),
    _PodShape(1078, "BE", 1, 810, 3_152, 5_600),
    _PodShape(653, "BE", 1, 250, 4_000, 22_888),
    _PodShape(637, "LS", 0, 0, 12_500, 57_344),
    _PodShape(629, "BE", 1, 1000, 3_152, 5_600),
    _PodShape(521, "LS", 1, 470, 11_908, 47_104),
    _PodShape(497, "BE", 1, 470, 8_000, 30_517),
    _PodShape(450, "BE", 0, 0, 32_000, 49_152),
    _PodShape(237, "LS", 1, 650, 11_908, 47_104),
    _PodShape(91, "BE", 1, 650, 3_152, 5_600),
    _PodShape(76, "Burstable", 1, 1000, 12_000, 24_576),
    _PodShape(23, "LS", 8, 1000, 64_200, 263_168),
    _PodShape(21, "Burstable", 8, 1000, 88_000, 327_680),
    _PodShape(15, "LS", 2, 1000, 16_200, 66_560),
    _PodShape(14, "LS", 4, 1000, 32_200, 132_096),
)
# Of deletion_time - scheduled_time in the same file.
_RUN_TIMES: Final = {
    "LS": _RunTime(6.8, 1.8), "BE": _RunTime(6.1, 1.9), "Burstable": _RunTime(7.9, 3.0),
}  # fmt: skip
# Counts in openb_pod_list_gpuspec33.csv, of pods with one GPU and one model; the first is none.
_MODELS: Final = (("", 4676), ("T4", 1291), ("G2", 331), ("P100", 279), ("G3", 86))
_POD_WEIGHTS: Final = [*accumulate(shape.weight for shape in _PODS)]


@dataclass(frozen=True, slots=True)
class SyntheticWorkload:
    """Pods of a synthetic trace: a source of jobs.

    ``load`` is the share of all GPUs that the pods request on average over ``days``. It is reached
    unless most pods would have to run until the end.
    """

    nodes: int = 16
    pods: int = 2000
    days: int = 2
    seed: int = 1
    load: float = 0.8

    @property
    def name(self) -> str:
        """The address of the trace."""
        return (
            f"synthetic:nodes={self.nodes},pods={self.pods},days={self.days},seed={self.seed},"
            f"load={self.load:g}"
        )

    def read(self) -> Iterator[TraceRow]:
        """Yield the jobs in order."""
        for row in self.pod_rows():
            yield TraceRow(row.line, job_of_row(row, openb_job))

    def pod_rows(self) -> Iterator[Row]:
        """Yield rows of openb's list of pods, in order of creation."""
        scale, last = self._run_time_scale(), self.days * _DAY
        for line, pod in enumerate(self._pods(self.pods), 2):
            deleted = min(last, pod.created + max(1, round(pod.run_seconds * scale)))
            shape = pod.shape
            values = (
                f"pod-{line - 2}", shape.cpu_milli, shape.memory_mib, shape.num_gpu,
                shape.gpu_milli, pod.model, shape.qos,
                "Running" if deleted == last else "Succeeded", pod.created, deleted, pod.created,
            )  # fmt: skip
            yield Row(line, dict(zip(COLUMNS, map(str, values), strict=True)))

    def node_rows(self) -> Iterator[Row]:
        """Yield rows of openb's list of nodes."""
        for line, shape in enumerate(self._node_shapes(), 2):
            values = (f"node-{line - 2}", *shape[1:])
            yield Row(line, dict(zip(NODE_COLUMNS, map(str, values), strict=True)))

    def node_list(self) -> tuple[TraceNode, ...]:
        """Return the nodes."""
        return tuple(openb_node(row) for row in self.node_rows())

    def _node_shapes(self) -> list[_NodeShape]:
        """Return as many nodes of each shape as its weight requires, the first of all of them."""
        total = sum(shape.weight for shape in _NODES)
        bounds = [0, *(n * self.nodes // total for n in accumulate(s.weight for s in _NODES))]
        return [
            shape
            for shape, low, high in zip(_NODES, bounds, bounds[1:], strict=False)
            for _ in range(high - low)
        ]

    def _run_time_scale(self) -> float:
        """Return the factor of run times for which the pods request ``load`` of all GPUs.

        It is found by bisection on a trace of at most 4,000 pods, each of which counts as several.
        """
        gpus = sum(shape.gpu for shape in self._node_shapes())
        sample = [*self._pods(min(self.pods, _CALIBRATED))]
        last = self.days * _DAY
        wanted = self.load * gpus * 1000 * last * len(sample) / self.pods
        low, high = 0.0, _LARGEST_SCALE
        while high - low > high / 1000:
            scale = (low + high) / 2
            requested = sum(
                pod.shape.num_gpu
                * pod.shape.gpu_milli
                * min(pod.run_seconds * scale, last - pod.created)
                for pod in sample
            )
            low, high = (scale, high) if requested < wanted else (low, scale)
        return high

    def _pods(self, number: int) -> Iterator[_DrawnPod]:
        rng = random.Random(f"{self.seed}:{number}")  # noqa: S311 (no secret)
        models = {shape.model for shape in self._node_shapes()} | {""}
        known = [(model, weight) for model, weight in _MODELS if model in models]
        model_names, model_weights = [m for m, _ in known], [*accumulate(w for _, w in known)]
        position = 0.0
        for left in range(number, 0, -1):
            # The next of the remaining sorted uniform numbers between the position and 1.
            position = 1 - (1 - position) * rng.random() ** (1 / left)
            (shape,) = rng.choices(_PODS, cum_weights=_POD_WEIGHTS)
            run_time = _RUN_TIMES[shape.qos]
            run_seconds = math.exp(rng.gauss(run_time.mean, run_time.deviation))
            (model,) = rng.choices(model_names, cum_weights=model_weights)
            created = _arrival(position * self.days)
            yield _DrawnPod(created, run_seconds, shape, model if shape.num_gpu == 1 else "")


class _DrawnPod(NamedTuple):
    created: int
    run_seconds: float
    shape: _PodShape
    model: str


def _arrival(position: float) -> int:
    """Return the second by which ``position`` days' worth of pods have arrived."""
    day, share = divmod(position, 1)
    low, high = 0.0, 1.0
    for _ in range(24):
        middle = (low + high) / 2
        arrived = middle - _AMPLITUDE * math.sin(2 * math.pi * middle) / (2 * math.pi)
        low, high = (middle, high) if arrived < share else (low, middle)
    return math.floor((day + low) * _DAY)


FULL_SIZE: Final = SyntheticWorkload(nodes=1523, pods=8152, days=149, load=0.45)
"""A trace of the size of openb, in which a pod runs for weeks: for measurements of speed."""


def write_openb(workload: SyntheticWorkload, directory: Path) -> tuple[Path, Path]:
    """Write a synthetic trace as the files of openb; return the lists of pods and of nodes."""
    pods = directory / "openb_pod_list_default.csv"
    nodes = directory / "openb_node_list_all_node.csv"
    _write(pods, COLUMNS, workload.pod_rows())
    _write(nodes, NODE_COLUMNS, workload.node_rows())
    return pods, nodes


def _write(path: Path, columns: tuple[str, ...], rows: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(row.values.values() for row in rows)
