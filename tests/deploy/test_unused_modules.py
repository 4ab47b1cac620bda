"""The modules that the image leaves out are never looked for by its commands."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from tests.deploy.cluster import Cluster, cluster
from tests.deploy.cluster_objects import filtered, full, preempted
from tests.deploy.container_root import ContainerRoot, Mount
from tests.deploy.image import DOCKER, Image
from tests.deploy.network import Network
from tests.deploy.test_image import CLUSTER, HOME, POD

PORT: Final = 8888
PATIENCE_SECONDS: Final = 60.0
_BETWEEN_SECONDS: Final = 0.1

# A finder in front of all others is asked for every module that is imported, found or not.
RECORDED: Final = """
import runpy, sys
class Recorder:
    names = open("/names/" + sys.argv[1], "a", buffering=1)
    def find_spec(self, name, path=None, target=None):
        print(name, file=self.names)
sys.meta_path.insert(0, Recorder())
sys.argv[0] = "reprieve"
runpy.run_module("extender", run_name="__main__", alter_sys=True)
"""
SERVED: Final = """
host: 127.0.0.1
search: cluster
events: true
allowPlainHTTP: true
tracing: {endpoint: "http://127.0.0.1:1/v1/traces"}
"""
EXPLAINED: Final = ("--cluster", "/files/cluster.yaml", "--pod", "/files/pod.yaml")
CONNECTED: Final = ("--kubeconfig", "/files/kubeconfig")
ONLY_BEFORE_3_12: Final = "numpy/distutils"
COMMANDS: Final = (
    ("--help",),
    ("explain", "preempt", *EXPLAINED),
    ("explain", "filter", *EXPLAINED),
    ("explain", "evict", "--help"),
    ("check-config", "/files/reprieve.yaml"),
    ("record", *CONNECTED, "--out", "/dev/null", "--for", "1s"),
)
# Nodes without a kubelet are reported, and the exit code is 1.
ADVISE: Final = ("advise", "eviction", *CONNECTED, "--samples", "2", "--interval", "1s")


def unused_paths() -> list[str]:
    lines = (DOCKER / "unused.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("pattern", unused_paths())
def test_every_entry_of_the_list_names_files_of_a_pinned_package(pattern: str) -> None:
    found = list(Path(sysconfig.get_path("purelib")).glob(pattern))
    assert found or (pattern == ONLY_BEFORE_3_12 and sys.version_info >= (3, 12))


@pytest.mark.parametrize("pattern", unused_paths())
def test_the_image_has_nothing_of_the_list(pattern: str, image: Image) -> None:
    assert not list((image.tree / HOME).glob(pattern))


@pytest.fixture
def there(net: Network, tmp_path: Path) -> Iterator[Cluster]:
    with cluster(net, tmp_path / "cluster", full()) as cluster_there:
        yield cluster_there


def test_no_command_looks_for_a_module_of_the_list(
    there: Cluster, image: Image, tmp_path: Path
) -> None:
    files, names, temporary = (tmp_path / name for name in ("files", "names", "temporary"))
    for directory in (files, names, temporary):
        directory.mkdir()
        directory.chmod(0o777)
    texts = {"cluster.yaml": CLUSTER, "pod.yaml": POD, "reprieve.yaml": SERVED}
    for name, text in {**texts, "kubeconfig": there.kubeconfig.read_text()}.items():
        (files / name).write_text(text)
    root = ContainerRoot(
        image.tree,
        image.user,
        mounts=[
            Mount(files, "/files"),
            Mount(names, "/names", writable=True),
            Mount(temporary, "/tmp", writable=True),  # noqa: S108 - for the kubeconfig's certificates
        ],
        environment=image.environment,
    )

    def recorded(*arguments: str) -> list[str]:
        return there.network.inside(*root.command("python", "-c", RECORDED, *arguments))

    for arguments, code in [*((arguments, 0) for arguments in COMMANDS), (ADVISE, 1)]:
        done = subprocess.run(recorded(*arguments), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("Traceback")) == (code, 0), done.stderr
    serve(recorded("serve", "--config", "/files/reprieve.yaml", *CONNECTED), there)
    looked_for = {name for path in names.iterdir() for name in path.read_text().split()}
    assert {"opentelemetry.sdk.trace", "kubernetes_asyncio.config", "numpy"} <= looked_for
    patterns = unused_paths()
    assert not [name for name in looked_for if is_listed(name, patterns)]


def serve(command: list[str], there: Cluster) -> None:
    """Run a server until it has answered both verbs."""
    log = there.home / "log"
    with log.open("w") as output, subprocess.Popen(command, stderr=output) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while there.network.request(PORT, "/readyz").status != 200:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(_BETWEEN_SECONDS)
            for path, body in (("/filter", filtered()), ("/preempt", preempted())):
                assert there.network.request(PORT, path, body).status == 200
            for path in ("/metrics", "/openapi.json", "/decisions"):
                assert there.network.request(PORT, path).status == 200
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()


def is_listed(name: str, patterns: list[str]) -> bool:
    """Return whether a pattern covers the file or directory of a module."""
    module = PurePosixPath(*name.split("."))
    paths = [module, module.with_suffix(".py"), *module.parents]
    return any(fnmatch(str(path), pattern) for path in paths for pattern in patterns)


def test_a_pattern_covers_modules_by_their_paths() -> None:
    listed = ["numpy.random", "numpy.random.mtrand", "kubernetes_asyncio.client.models.v1_pod"]
    used = ["numpy", "numpy._core.numeric", "kubernetes_asyncio.client.models"]
    assert [name for name in (*listed, *used) if is_listed(name, unused_paths())] == listed
