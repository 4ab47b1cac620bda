"""The output of a client by commands, without the parts that differ from run to run.

A scenario has initial objects, files, and steps, which are commands. Its transcript is a list of
exchanges. Two servers behave alike if the transcripts are equal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent / "kubectl"
NAMESPACE: Final = "shop"
PROMPT: Final = "$ "


@dataclass(frozen=True, slots=True)
class Step:
    """One command; one with ``lines`` to wait for stays open while those ``during`` it run.

    ``unordered`` is output whose lines come in any order.
    """

    words: tuple[str, ...]
    command: str
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    during: tuple[Step, ...] = ()
    lines: int = 0
    unordered: bool = False

    @staticmethod
    def read(document: str | Mapping[str, Any]) -> Step:
        """Read a step: a command, or a mapping with more about it."""
        if isinstance(document, str):
            return Step(tuple(shlex.split(document)), document)
        return Step(
            tuple(shlex.split(document["run"])),
            document["run"],
            document.get("stdin", ""),
            document.get("env", {}),
            tuple(map(Step.read, document.get("during", ()))),
            document.get("lines", 0),
            document.get("unordered", False),
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """The initial objects, files and steps, and the components of the control plane that run.

    ``still`` stops the clock, for lists whose order depends on seconds.
    """

    name: str
    world: tuple[Mapping[str, Any], ...]
    files: Mapping[str, str]
    steps: tuple[Step, ...]
    run: str = "none"
    still: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """A command and its result."""

    command: str
    output: str
    status: int = 0

    def __str__(self) -> str:
        """Return the exchange as a terminal would show it."""
        exit_line = f"[exit {self.status}]\n" if self.status else ""
        return f"{PROMPT}{self.command}\n{self.output}{exit_line}"


def scenarios(folder: Path = HERE) -> list[Scenario]:
    """Read all scenarios of a folder, by name."""
    worlds = yaml.safe_load((HERE / "worlds.yaml").read_text())
    return [_scenario(path, worlds) for path in sorted((folder / "scenarios").glob("*.yaml"))]


def _scenario(path: Path, worlds: Mapping[str, Sequence[Mapping[str, Any]]]) -> Scenario:
    document = yaml.safe_load(path.read_text())
    world = [thing for name in document.get("world", ()) for thing in worlds[name]]
    steps = tuple(map(Step.read, document["steps"]))
    run = document.get("run", "none")
    still = document.get("still", False)
    return Scenario(path.stem, tuple(world), document.get("files", {}), steps, run, still)


def golden_path(release: str, scenario: str) -> Path:
    """Return the path of the real server's transcript."""
    return HERE / "golden" / release / f"{scenario}.txt"


def read_golden(release: str, scenario: str) -> list[Exchange]:
    """Read a transcript of the real server."""
    return read_transcript(golden_path(release, scenario))


def read_transcript(path: Path) -> list[Exchange]:
    """Read a transcript."""
    blocks = re.split(rf"^{re.escape(PROMPT)}", path.read_text(), flags=re.MULTILINE)[1:]
    return [_exchange(block) for block in blocks]


def _exchange(block: str) -> Exchange:
    command, _, output = block.partition("\n")
    if left := re.search(r"^\[exit (\d+)\]\n\Z", output, flags=re.MULTILINE):
        return Exchange(command, output[: left.start()], int(left[1]))
    return Exchange(command, output)


def write_golden(release: str, scenario: str, exchanges: Iterable[Exchange]) -> None:
    """Write a golden transcript."""
    path = golden_path(release, scenario)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(str, exchanges)))


_TAKEN_OUT: Final = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", "<token>"),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
        (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"\b\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}", "<time>"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]* [+-]\d{4} UTC", "<time>"),
        (r'("?resourceVersion"?: )"\d+"', r'\1"<version>"'),
        (r"(?:https?://)?127\.0\.0\.1:\d+", "<server>"),
        (r"(?:/[\w.-]+)*/(LIVE|MERGED|kubectl-edit)-\d+", r"\1"),
        (r"(?m)^(---|\+\+\+) (LIVE|MERGED)(\S+)\t.*", r"\1 \2\3"),
        (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
        (r":3[0-2]\d{3}/(TCP|UDP)", r":<port>/\1"),
        (r"\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "gen-<suffix>"),
        (r"(?<![\w=.:-])(?:(?:\d+m)?\d{1,2}s|\d+y\d*d?|\d+d\d*h?)\b", "<age>"),
        (r"(?m)^([IWE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", r"\1 "),
        (r"(?m)^E reflector\.go:.*context deadline exceeded.*\n", ""),
        (r"(?<=\S) {2,}", "  "),
        (r"[ \t]+\n", "\n"),
    )
]


def normalise(output: str) -> str:
    """Replace the parts that differ from run to run: random names, times, addresses, widths."""
    for pattern, replacement in _TAKEN_OUT:
        output = pattern.sub(replacement, output)
    return output if not output or output.endswith("\n") else output + "\n"
