"""What the tests of other projects ended with, compared with a list of those that cannot pass.

A list (``*.yaml``) has reasons, each with patterns of names. A test of the list has to fail; one
that passes, and a test beside the list that fails, fail the run. A reason with ``waits`` is about
tests that would wait for minutes; they are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

HERE: Final = Path(__file__).parent
_GO_TEST: Final = re.compile(r"^\s*--- (PASS|FAIL): (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Listed:
    """A pattern of names of tests that cannot pass."""

    pattern: str
    waits: bool

    def matches(self, name: str) -> bool:
        """Return whether a test is meant."""
        return re.search(self.pattern, name) is not None


def read_list(file: str) -> list[Listed]:
    """Return the patterns of a list."""
    return [
        Listed(pattern, entry.get("waits", False))
        for entry in yaml.safe_load((HERE / file).read_text())
        for pattern in entry["tests"]
    ]


def specs(report: Path) -> Iterator[tuple[str, str]]:
    """Return the names of the specs in a report of Ginkgo (JSON), and their states."""
    for suite in json.loads(report.read_bytes()):
        for spec in suite["SpecReports"] or ():
            if spec["LeafNodeType"] == "It":
                texts = (*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"])
                yield " ".join(texts), spec["State"]


def go_tests(output: str) -> Iterator[tuple[str, str]]:
    """Return the names of the tests in the output of a Go program of tests, and their states."""
    for result, name in _GO_TEST.findall(output):
        yield name, "passed" if result == "PASS" else "failed"


def differences(states: Mapping[str, str], listed: Iterable[Listed]) -> list[str]:
    """Return what is not as listed, one line for each test; tests that did not run do not count."""
    known = tuple(listed)
    found = []
    for name, state in sorted(states.items()):
        expected = any(each.matches(name) for each in known)
        if state == "passed" and expected:
            found.append(f"listed, but passed: {name}")
        elif state not in ("passed", "skipped", "pending") and not expected:
            found.append(f"{state}: {name}")
    return found


def counts(states: Mapping[str, str], listed: Iterable[Listed]) -> tuple[int, int, int]:
    """Return how many tests passed, are listed, and failed without being listed."""
    known = tuple(listed)
    passed = sum(state == "passed" for state in states.values())
    named = sum(any(each.matches(name) for each in known) for name in states)
    return passed, named, len(differences(states, known))
