"""A release is the same bytes in every run, and its dependencies have licences that we accept."""

from __future__ import annotations

import json
import subprocess
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.bill_of_materials import bill_of_materials, dependencies, license_of
from tests.deploy.charts import RELEASE
from tests.deploy.distribution import (
    EPOCH,
    ROOT,
    SUMS,
    last_commit,
    platform_tag,
    write_distribution,
    write_sums,
)
from tests.e2e.clients import programs

PERMITTED: Final = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0",
    "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip


def test_two_runs_write_the_same_bytes(distribution: Path, tmp_path: Path) -> None:
    write_distribution(tmp_path, EPOCH)
    write_sums(tmp_path)
    assert (tmp_path / SUMS).read_text() == (distribution / SUMS).read_text()


def test_it_has_a_wheel_a_source_distribution_a_chart_and_a_bill_of_materials(
    distribution: Path,
) -> None:
    suffixes = {
        path.name.rpartition(f"-{version('reprieve')}")[2] for path in distribution.iterdir()
    }
    assert {".tar.gz", ".tgz", ".cdx.json"} < suffixes
    assert len(list(distribution.glob("reprieve-*.whl"))) == 1
    assert (distribution / SUMS).read_text().count("\n") == 4
    subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=distribution, check=True)


def test_the_wheel_has_the_extension_and_the_tag_of_old_systems(distribution: Path) -> None:
    [wheel] = distribution.glob("*.whl")
    assert wheel.name.endswith(f"-{platform_tag()}.whl")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.startswith("policies/kubernetes/_packed_names.") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "extender", "fakeapi", "policies", "reprieve",
    }  # fmt: skip


def test_helm_renders_the_packed_chart(distribution: Path) -> None:
    [chart] = distribution.glob("*.tgz")
    helm = programs("1.37")["helm"]
    done = subprocess.run(
        [helm, "template", RELEASE, chart], capture_output=True, text=True, check=True
    )
    assert "kind: Deployment" in done.stdout


def test_the_source_distribution_has_the_sources_alone(distribution: Path) -> None:
    [source] = distribution.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert any(name.endswith("extender/__main__.py") for name in names)
    assert any(name.endswith("_packed_names.c") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_the_bill_of_materials_has_every_package_of_the_image() -> None:
    lines = (ROOT / "deploy/docker/requirements.txt").read_text().splitlines()
    locked = [Requirement(line.rstrip(" \\")) for line in lines if line[0] not in " #"]
    names = [each.name for each in locked if each.marker is None or each.marker.evaluate()]
    document = bill_of_materials(EPOCH)
    listed = {each["name"]: each["version"] for each in document["components"]}
    assert {canonicalize_name(name) for name in names} <= listed.keys()
    assert all(version(name) == there for name, there in listed.items())
    assert json.loads(json.dumps(document))["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize("name", dependencies())
def test_the_licence_of_every_dependency_is_permitted(name: str) -> None:
    expression = license_of(dependencies()[name])
    words = expression.replace("(", " ").replace(")", " ").split()
    assert set(words) - {"AND", "OR"} <= PERMITTED, expression


def test_the_time_of_a_release_is_that_of_the_last_commit() -> None:
    assert last_commit({"SOURCE_DATE_EPOCH": "1700000000"}) == EPOCH
    assert last_commit({}) > EPOCH
