"""The tests of controller-runtime that need an API server, with fakeapi in its place."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.build import modules, suite_program, tools
from tests.conformance.scheduling.releases import built
from tests.conformance.suites.envtest.assets import install
from tests.conformance.suites.results import (
    Listed,
    counts,
    differences,
    go_tests,
    read_list,
    specs,
)

SUITE: Final = "suites/controller-runtime"
MODULE: Final = "sigs.k8s.io/controller-runtime/pkg/"
PACKAGES: Final = re.findall(rf"^\t{MODULE}(\S+)$", modules(SUITE).read_text(), re.MULTILINE)
LISTED: Final[list[Listed]] = read_list("controller-runtime.yaml")


def run_tests(package: str, directory: Path) -> tuple[dict[str, str], str]:
    """Return the states of the tests of a package by name, and the output of its program."""
    assets, report = directory / "assets", directory / "report.json"
    assets.mkdir(parents=True)
    install(assets)
    done = subprocess.run(
        (
            built(SUITE) / suite_program(f"{MODULE}{package}"),
            "-test.v",
            "-ginkgo.no-color",
            f"-ginkgo.json-report={report}",
        ),
        cwd=tools(SUITE)[f"{MODULE}{package}"],
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets), "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = [*go_tests(done.stdout), *(specs(report) if report.exists() else ())]
    return {f"{package} {name}": state for name, state in found}, done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", PACKAGES)
def test_the_tests_of_a_package_end_as_listed(
    package: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Run a package a second time where it differs.

    Two of its tests depend on luck: envtest picks a port that a connection may take before the
    webhooks listen, and an informer may be synced before its cancelled context is seen.
    """
    states, output = run_tests(package, tmp_path / "first")
    if states and differences(states, LISTED):
        states, output = run_tests(package, tmp_path / "second")
    assert states, output
    record_property("controller-runtime", counts(states, LISTED))
    assert not differences(states, LISTED), output[-20_000:]
