"""The bounds of a request, which are checked before it is decoded.

kube-scheduler sends nodes that the cluster has, and victims that are pods on them. Its cache may be
ahead of the watch, and a unit of pods is offered with each of its nodes, so a request may have some
more than the watch has shown. One with far more is not from kube-scheduler, and is not decoded. So
decoding costs at most about what a call of kube-scheduler on this cluster can cost.

Small requests and objects are decoded without counting: they cannot cost much. A large one is
counted in slices (:mod:`extender.protocol.json_values`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Final, TypeVar

from extender.protocol.json_values import ValueCounter, count_in_slices
from policies.engine_selection import VECTORIZED

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A function in steps of some milliseconds, between which the event loop may run."""

SMALL_BYTES: Final = 2**18
"""The size of a request that is decoded without counting."""
MAX_OBJECT_BYTES: Final = 3 * 2**20
"""The API server's limit of a request body, so that of any object."""
MAX_OBJECT_VALUES: Final = 20_000
_SMALL_OBJECT_BYTES: Final = 2**16
_OUTSIDE: Final = (1, "documents")
_FIELDS: Final = (1_000, "fields")


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """How many nodes (or node names) and victims a request may have; by default any number."""

    nodes: int = maxsize
    victims: int = maxsize

    def filter_levels(self) -> Sequence[tuple[int, str]]:
        """Return the limit of the values on each level of ExtenderArgs, and what they are."""
        return _OUTSIDE, _FIELDS, (self.nodes, "node names"), (self.nodes, "nodes")

    def preempt_levels(self) -> Sequence[tuple[int, str]]:
        """Return the limit of the values on each level of ExtenderPreemptionArgs."""
        nodes, victims = (self.nodes, "nodes"), (self.victims, "victims")
        return _OUTSIDE, _FIELDS, nodes, (4 * self.nodes, "fields of nodes"), victims


UNBOUNDED: Final = RequestBounds()


def bounds_of_cluster(nodes: int, pods: int) -> RequestBounds:
    """Return the bounds for a cluster with this many known nodes and pods.

    A level also has values that are neither nodes nor victims, such as the fields of the pod.
    """
    return RequestBounds(nodes * 5 // 4 + 1_000, pods * 5 // 4 + 100_000)


def find_excess(text: bytes, levels: Sequence[tuple[int, str]]) -> Steps[str]:
    """Return what a request has too many of, "" if nothing."""
    if len(text) <= SMALL_BYTES:
        return ""
    for counts in count_in_slices(value_counter(), text):
        for count, (limit, what) in zip(counts, levels, strict=False):
            if count > limit:
                return f"too many {what}; expected at most {limit}"
        yield
    return ""


def object_excess(raw: bytes) -> str:
    """Return what an object has too many of, "" if nothing."""
    if len(raw) > MAX_OBJECT_BYTES:
        return f"{len(raw)} bytes; expected at most {MAX_OBJECT_BYTES}"
    if len(raw) > _SMALL_OBJECT_BYTES:
        for counts in count_in_slices(value_counter(), raw):
            if sum(counts) > MAX_OBJECT_VALUES:
                return f"too many values; expected at most {MAX_OBJECT_VALUES}"
    return ""


def value_counter() -> ValueCounter:
    """Return the fastest counter that is installed."""
    if not VECTORIZED:
        return ValueCounter()
    from extender.protocol.vectorized_json_values import VectorizedValueCounter  # needs NumPy

    return VectorizedValueCounter()


def at_once(steps: Steps[T]) -> T:
    """Return the result of all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
