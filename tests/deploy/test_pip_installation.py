"""The wheel runs outside of the checkout, without extras and with each of them."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path
from shutil import copy2
from typing import Final
from urllib.request import urlopen

import pytest

from tests.deploy.distribution import ROOT
from tests.deploy.pip_installation import Environment, empty_environment

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Final = ("", *PROJECT["optional-dependencies"])
PACKAGES_BYTES: Final = 120 * 10**6
FILES: Final = ("cluster.yaml", "urgent.yaml")
ENGINE: Final = (
    "the vectorized engine needs the extra 'vectorized': pip install 'reprieve[vectorized]'"
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def installed(distribution: Path, directory: Path, extra: str) -> Environment:
    environment = empty_environment(directory)
    [wheel] = distribution.glob("*.whl")
    environment.install(f"{wheel}[{extra}]" if extra else str(wheel))
    for name in FILES:
        copy2(ROOT / "docs/quick-start" / name, environment.work)
    return environment


def get(url: str) -> str:
    with urlopen(url) as response:  # noqa: S310 - a server of the test
        return str(response.read(), "utf-8")


@pytest.fixture(scope="module")
def plain(distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras."""
    return installed(distribution, tmp_path_factory.mktemp("plain"), "")


@pytest.fixture(scope="module", params=EXTRAS, ids=lambda extra: extra or "none")
def environment(
    request: pytest.FixtureRequest,
    plain: Environment,
    distribution: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Environment:
    """The wheel without extras, then with each of them."""
    extra = str(request.param)
    return installed(distribution, tmp_path_factory.mktemp(extra), extra) if extra else plain


def test_the_commands_run(environment: Environment) -> None:
    assert environment.run("--version") == f"reprieve {version('reprieve')}\n"
    assert "explain" in environment.run("--help")
    files = ("--cluster", "cluster.yaml", "--pod", "urgent.yaml")
    decision = json.loads(environment.run("explain", "preempt", *files, "-o", "json"))
    assert decision["node"] == "node-1"


@pytest.mark.parametrize(
    ("command", "path", "expected"),
    [
        (("serve", "--embedded", "demo"), "/livez", "ok\n"),
        (("fakeapi", "--run", "all"), "/version", '"gitVersion":"v1.'),
    ],
    ids=["serve", "fakeapi"],
)
def test_the_servers_start_and_stop(
    command: tuple[str, ...], path: str, expected: str, environment: Environment
) -> None:
    with environment.serving(*command) as url:
        assert expected in get(url + path)


def test_the_demo_needs_no_extra(plain: Environment) -> None:
    assert "What's next:" in plain.run("demo")


def test_packages_and_their_bytecode_take_at_most_120_mb(plain: Environment) -> None:
    sizes = {bytecode: plain.size(bytecode=bytecode) for bytecode in (False, True)}
    assert sizes[True] <= PACKAGES_BYTES, sizes


def test_a_server_of_a_real_cluster_names_the_extra_that_it_lacks(plain: Environment) -> None:
    with plain.serving("fakeapi") as cluster, plain.serving("serve", "--server", cluster):
        pass
    assert ENGINE in plain.errors()
