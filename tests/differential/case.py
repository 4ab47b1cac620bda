"""One pod scheduled by a real kube-scheduler, as a file that can be compared again.

The files look like the lines of ``tests/recorded/decisions.jsonl.gz``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.builders import Document


class Offer(msgspec.Struct, frozen=True):
    """The victims that were offered on a node, by UID in the order sent."""

    victims: tuple[str, ...]
    violations: int


class Answer(msgspec.Struct, rename="camel", frozen=True):
    """The result of kube-scheduler.

    ``candidates`` is what it offered to its extender, which returned it unchanged; None without a
    call. ``victims`` are the UIDs of the pods that were deleted, sorted; ``message`` is of
    the pod's PodScheduled condition.
    """

    bound_to: str = ""
    candidates: Mapping[str, Offer] | None = None
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    message: str = ""


class Case(msgspec.Struct, rename="camel", frozen=True):
    """A cluster, the pod to be scheduled, and the result of a release with its feature gates."""

    name: str
    upstream: str
    items: Sequence[Document]
    pod: Document
    answer: Answer
    gates: Mapping[str, bool] = {}


def write(case: Case, path: Path) -> None:
    """Write a case, indented."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")


def read(path: Path) -> Case:
    """Read a case; raises OSError or msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Case)
