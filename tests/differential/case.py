"""One question put to a real kube-scheduler with its answer, as a file that can be judged again.

from tests.builders import Document

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

    ``candidates`` is what it put to its extender, which sent it back as it was; None if it put
    nothing. ``victims`` are the UIDs of the pods that were deleted, sorted; ``message`` is of
    the pod's PodScheduled condition.
    """

    bound_to: str = ""
    candidates: Mapping[str, Offer] | None = None
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    message: str = ""


class Case(msgspec.Struct, rename="camel", frozen=True):
    """A cluster as it stood, the pod that wanted in, and what a release made of it."""

    name: str
    upstream: str
    items: Sequence[Document]
    pod: Document
    answer: Answer


def write(case: Case, path: Path) -> None:
    """Write a case, indented."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")


def read(path: Path) -> Case:
    """Read a case; raises OSError or msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Case)
