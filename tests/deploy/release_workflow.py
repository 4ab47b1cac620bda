"""The workflow that publishes a release, and its commands run with recording programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.distribution import ROOT

WORKFLOWS: Final = ROOT / ".github/workflows"
REPOSITORY: Final = "Example-Owner/reprieve"
_RUNNER: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""How a runner starts the commands of a step."""
_RECORDER: Final = '#!/bin/sh\necho "$(basename "$0") $*" >>"$RECORDED"\n'


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a workflow."""

    name: str
    spec: Mapping[str, Any]

    @property
    def needs(self) -> Sequence[str]:
        """The jobs that have to succeed before this one starts."""
        needs = self.spec.get("needs", [])
        return [needs] if isinstance(needs, str) else list(needs)

    @property
    def commands(self) -> Sequence[str]:
        """The commands of each step that has some."""
        return [step["run"] for step in self.spec["steps"] if "run" in step]

    @property
    def actions(self) -> Sequence[str]:
        """The actions that it uses, with their versions."""
        return [step["uses"] for step in self.spec["steps"] if "uses" in step]


def workflow(name: str) -> Any:
    """Return a decoded workflow; YAML reads its key ``on`` as true."""
    return yaml.safe_load((WORKFLOWS / name).read_text())


def jobs(name: str) -> dict[str, Job]:
    """Return the jobs of a workflow by name."""
    return {key: Job(key, spec) for key, spec in workflow(name)["jobs"].items()}


def needed_before(job: str, among: Mapping[str, Job]) -> Iterator[str]:
    """Yield the jobs that have to succeed before a job starts, directly or not."""
    for name in among[job].needs:
        yield name
        yield from needed_before(name, among)


def recorded_commands(job: Job, tag: str, work: Path, programs: Sequence[str]) -> list[str]:
    """Run the commands of a job in ``work``; return the calls of ``programs``, which only record.

    All other programs are real.
    """
    path, calls = work / "programs", work / "calls"
    path.mkdir()
    calls.touch()
    for program in programs:
        (path / program).write_text(_RECORDER)
        (path / program).chmod(0o755)
    owner = REPOSITORY.partition("/")[0]
    environ = {
        "PATH": f"{path}:{os.environ['PATH']}",
        "RECORDED": str(calls),
        "TAG": tag,
        "TOKEN": "token",
        "GITHUB_ACTOR": "releaser",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_REPOSITORY_OWNER": owner,
    }
    for command in job.commands:
        subprocess.run([*_RUNNER, command], cwd=work, env=environ, check=True)
    return calls.read_text().splitlines()
