"""A tag publishes what ``make dist`` writes, and a dry run publishes nothing.

The commands of the publishing jobs run on the files of a release; the programs that would send
something only record how they are called.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest
import yaml

from tests.deploy.charts import CHART
from tests.deploy.distribution import ROOT, SUMS
from tests.deploy.release_workflow import (
    REPOSITORY,
    WORKFLOWS,
    Job,
    jobs,
    needed_before,
    recorded_commands,
    workflow,
)

JOBS: Final = jobs("release.yml")
BUILDING: Final = ("build", "wheels")
VERSION: Final = version("reprieve")
TAG: Final = f"v{VERSION}"
PROGRAMS: Final = ("docker", "helm", "gh")
IMAGE: Final = f"ghcr.io/example-owner/reprieve:{VERSION}"
_MAJOR: Final = re.compile(r"[\w-]+/[\w-]+@(release/)?v\d+")

CALLS: Final = {
    "pypi": [],
    "image": [
        "docker login ghcr.io --username releaser --password-stdin",
        "docker load --input dist/image.tar",
        f"docker tag localhost/reprieve:latest {IMAGE}",
        f"docker push {IMAGE}",
    ],
    "chart": [
        "helm registry login ghcr.io --username releaser --password-stdin",
        f"helm push dist/reprieve-{VERSION}.tgz oci://ghcr.io/example-owner/charts",
    ],
}


@pytest.fixture
def work(distribution: Path, tmp_path: Path) -> Path:
    """Return a directory as a publishing job has it: with the files of a release in dist/."""
    copytree(distribution, tmp_path / "dist")
    (tmp_path / "dist/image.tar").touch()
    return tmp_path


def test_tags_and_runs_by_hand_start_it() -> None:
    triggers = workflow("release.yml")[True]
    assert triggers["push"] == {"tags": ["v*"]}
    assert triggers["workflow_dispatch"]["inputs"]["dry-run"]["default"] is True


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.iterdir()))
def test_actions_are_pinned_by_their_major_version(name: str) -> None:
    actions = [action for job in jobs(name).values() for action in job.actions]
    assert [action for action in actions if not _MAJOR.fullmatch(action)] == []


def test_nothing_is_published_before_everything_is_built_and_checked() -> None:
    condition = JOBS["approve"].spec["if"]
    assert condition == (
        "github.ref_type == 'tag' && (github.event_name == 'push' || !inputs.dry-run)"
    )
    for name in JOBS.keys() - {*BUILDING, "approve"}:
        assert {*BUILDING, "approve"} <= {*needed_before(name, JOBS)}, name


def test_jobs_that_build_have_no_permission_to_publish() -> None:
    assert workflow("release.yml")["permissions"] == {"contents": "read"}
    assert not any("permissions" in JOBS[name].spec for name in (*BUILDING, "approve"))


@pytest.mark.parametrize("name", CALLS)
def test_the_commands_publish_the_files_of_a_release(name: str, work: Path) -> None:
    assert recorded_commands(JOBS[name], TAG, work, PROGRAMS) == CALLS[name]


def test_pypi_gets_the_wheel_and_the_sources_alone(work: Path) -> None:
    recorded_commands(JOBS["pypi"], TAG, work, PROGRAMS)
    names = [path.name for path in (work / "packages").iterdir()]
    assert f"reprieve-{VERSION}.tar.gz" in names
    assert [name for name in names if not name.endswith((".whl", ".tar.gz"))] == []
    assert len(names) == 2


def test_the_release_has_every_file_and_its_digest(work: Path) -> None:
    [call] = recorded_commands(JOBS["github"], TAG, work, PROGRAMS)
    files = sorted(f"dist/{path.name}" for path in (work / "dist").iterdir())
    head = f"gh release create {TAG} --repo {REPOSITORY} --verify-tag"
    title = f"--title Reprieve {VERSION} --generate-notes"
    assert call.split() == [*head.split(), *title.split(), *files]
    subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=work / "dist", check=True)
    assert (work / "dist" / SUMS).read_text().count("\n") == len(files) - 1


@pytest.mark.parametrize("job", [JOBS[name] for name in BUILDING], ids=BUILDING)
def test_every_target_of_the_jobs_exists(job: Job) -> None:
    targets = [command.split()[1] for command in job.commands]
    done = subprocess.run(
        ["make", "--dry-run", "--question", *targets], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr


def test_the_version_is_the_same_everywhere() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {chart["version"], chart["appVersion"], project["version"]} == {VERSION}
    assert os.environ.get("TAG") in (None, "", TAG), "the tag is not the version of the project"
