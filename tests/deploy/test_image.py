"""The image contains the extender and its imports, and runs as a user without write access."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from extender.config.component_config import Config
from tests.deploy.container_root import ContainerRoot, Mount, User
from tests.deploy.image import DOCKER, ROOT, Image

NOBODY: Final = 65532
HOME: Final = "opt/reprieve"
LARGEST: Final = 120 * 2**20
"""Six of them are the library for expressions of policies."""

CLUSTER: Final = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: default}}
- apiVersion: v1
  kind: Node
  metadata: {name: node-1}
  status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
- apiVersion: v1
  kind: Pod
  metadata: {name: low, namespace: default, uid: low}
  spec:
    nodeName: node-1
    priority: 1
    containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]
  status: {phase: Running}
"""
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: default, uid: high}
spec:
  priority: 100
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "good.yaml").write_text("host: 0.0.0.0\nallowPlainHTTP: true\n")
    (tmp_path / "bad.yaml").write_text("host: 0.0.0.0\nprot: 8888\n")
    for path in (tmp_path, *tmp_path.iterdir()):
        path.chmod(0o755)
    return tmp_path


def run(image: Image, files: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the image with arguments and a read-only root file system."""
    return inside(image, files, *image.entrypoint, *arguments)


def inside(image: Image, files: Path, *command: str) -> subprocess.CompletedProcess[str]:
    root = ContainerRoot(
        image.tree,
        image.user,
        mounts=[Mount(files, "/files")],
        environment=image.environment,
        directory=image.directory,
    )
    return subprocess.run(root.command(*command), capture_output=True, text=True, check=False)


def test_the_image_has_only_two_of_our_packages(image: Image) -> None:
    home = image.tree / HOME
    assert (home / "extender" / "__main__.py").exists()
    assert (home / "policies" / "preemption" / "engine.py").exists()
    assert not [name for name in ("fakeapi", "tests", "docs") if (home / name).exists()]


def test_the_image_adds_at_most_120_megabytes_to_its_base(image: Image) -> None:
    done = subprocess.run(
        ["du", "--summarize", "--block-size=1", image.tree / HOME],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout.split()[0]) <= LARGEST


def test_every_package_of_the_image_is_pinned(image: Image) -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    versions = {_plain(name): pin for name, pin in pinned.items()}
    there = [
        path.name.removesuffix(".dist-info") for path in (image.tree / HOME).glob("*.dist-info")
    ]
    found = {_plain(name): pin for name, pin in (each.rsplit("-", 1) for each in there)}
    assert found.pop("reprieve") == version("reprieve")
    assert found.items() <= versions.items()
    assert required_packages() <= found.keys()


def required_packages() -> set[str]:
    """Return the required packages, without their dependencies."""
    lines = (DOCKER / "requirements.in").read_text().splitlines()
    names = {_plain(line) for line in map(str.strip, lines) if line and line[0] != "#"}
    assert names
    return names


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_compiled_module_is_used(image: Image, files: Path) -> None:
    code = "import policies.kubernetes._packed_names as n; print(n.__file__)"
    done = inside(image, files, "python", "-c", code)
    place = Path(done.stdout.strip())
    assert place.is_relative_to(f"/{HOME}/policies/kubernetes"), done.stderr
    assert place.suffix == ".so"


EVERY_MODULE: Final = """
import importlib, pkgutil
# These need the extras tls, parquet and mcp, which the image does not have.
left_out = ("secure_serving.self_signed", "ledger.storage.parquet_export", "mcp.")
for package in ("extender", "policies"):
    place = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(place, f"{package}."):
        if not module.name.startswith(tuple(f"extender.{each}" for each in left_out)):
            importlib.import_module(module.name)
        print(module.name)
"""


def test_all_modules_can_be_imported(image: Image, files: Path) -> None:
    done = inside(image, files, "python", "-c", EVERY_MODULE)
    assert done.returncode == 0, done.stderr
    assert {
        "extender.__main__",
        "extender.recording.event_writer",
        "policies.preemption.engine",
    } <= set(done.stdout.split())


def test_it_runs_as_nonroot_without_write_access(image: Image, files: Path) -> None:
    assert image.user == User(NOBODY, NOBODY)
    done = inside(
        image, files, "sh", "-c", "id -u; id -g; grep ^Cap /proc/self/status | cut -f2 | sort -u"
    )
    assert done.stdout.split() == [str(NOBODY), str(NOBODY), "0" * 16]
    for place in ("/opt/reprieve/x", "/tmp/x", "/x", "/etc/x"):  # noqa: S108 - it must not work
        done = inside(image, files, "touch", place)
        assert done.returncode != 0, place


def test_its_bases_are_pinned_and_its_port_is_the_default_one(image: Image) -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    bases = re.findall(r"^ARG (\w+)=python:(3\.11\.\d+)(?:-slim)?-\w+$", dockerfile, re.MULTILINE)
    assert [name for name, _ in bases] == ["BUILDER", "BASE"]
    assert len({release for _, release in bases}) == 1, "one Python for both stages"
    assert image.ports == [Config().port]


def test_without_arguments_it_lists_the_commands(image: Image, files: Path) -> None:
    done = run(image, files, *image.command)
    assert done.returncode == 0, done.stderr
    assert {"serve", "check-config", "explain", "advise", "record"} <= set(done.stdout.split())


def test_it_explains(image: Image, files: Path) -> None:
    given = ("--cluster", "/files/cluster.yaml", "--pod", "/files/pod.yaml", "-o", "json")
    done = run(image, files, "explain", "preempt", *given)
    answer = json.loads(done.stdout)
    assert (answer["node"], [each["name"] for each in answer["victims"]]) == ("node-1", ["low"])


def test_it_checks_configurations(image: Image, files: Path) -> None:
    good = run(image, files, "check-config", "/files/good.yaml")
    assert (good.returncode, good.stdout) == (0, "/files/good.yaml: valid\n")
    bad = run(image, files, "check-config", "/files/bad.yaml")
    assert bad.returncode == 1
    assert "prot" in bad.stderr


def test_it_has_no_cluster_of_its_own(image: Image, files: Path) -> None:
    done = run(image, files, "serve", "--embedded", "demo")
    assert done.returncode == 2
    assert done.stderr == (
        "reprieve: --embedded: 'demo' requires fakeapi, which this command does not include; "
        "expected --server or --kubeconfig\n"
    )
