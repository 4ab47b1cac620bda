"""The contracts between packages bite: a planted violation breaks the one meant for it.

Each test plants one import, or one module, in a copy of the packages and runs import-linter there.
A contract without a violation to show for it fails, so the table below follows pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("policies", "extender", "fakeapi")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS = {contract["name"]: contract for contract in SETTINGS["contracts"]}

VIOLATIONS = {
    "fakeapi stands on extender, extender on policies": (
        "policies/reference.py",
        "import extender.kube.clock",
    ),
    "Inside policies": ("policies/model.py", "import policies.decision"),
    "Filters stand beside each other": (
        "policies/filtering/node_name.py",
        "import policies.filtering.node_ports",
    ),
    "Inside policies.columns": ("policies/columns/cells.py", "import policies.columns.classes"),
    "Inside policies.vectorized": (
        "policies/vectorized/view.py",
        "import policies.vectorized.asking",
    ),
    "Inside policies.scaledown": (
        "policies/scaledown/replica.py",
        "import policies.scaledown.ranking",
    ),
    "Inside policies.spreading": (
        "policies/spreading/model.py",
        "import policies.spreading.limits",
    ),
    "Inside policies.eviction": (
        "policies/eviction/thresholds.py",
        "import policies.eviction.observations",
    ),
    "Inside extender": ("extender/overlay.py", "import extender.wire"),
    "Inside extender.eviction": (
        "extender/eviction/files.py",
        "import extender.eviction.explaining",
    ),
    "Inside extender.advising": (
        "extender/advising/inventory.py",
        "import extender.advising.rounds",
    ),
    "Inside extender.memory": (
        "extender/memory/groups.py",
        "import extender.memory.measuring",
    ),
    "Inside extender.front": (
        "extender/front/certificates.py",
        "import extender.front.rotation",
    ),
    "Inside extender.recording": (
        "extender/recording/withholding.py",
        "import extender.recording.files",
    ),
    "Inside extender.kube": ("extender/kube/backoff.py", "import extender.kube.decoding"),
    "Inside extender.kube.workloadspread": (
        "extender/kube/workloadspread/shapes.py",
        "import extender.kube.workloadspread.pods",
    ),
    "OpenTelemetry is known in one place": ("extender/metrics.py", "import opentelemetry.trace"),
    "Inside fakeapi": ("fakeapi/kinds/builtin.py", "import fakeapi.store"),
    "Inside fakeapi.controlplane": (
        "fakeapi/controlplane/zones.py",
        "import fakeapi.controlplane.gc",
    ),
    "Inside fakeapi.controlplane.kubelet": (
        "fakeapi/controlplane/kubelet/durations.py",
        "import fakeapi.controlplane.kubelet.curves",
    ),
    "What kubelets think needs no client and no clock": (
        "fakeapi/controlplane/kubelet/rooms.py",
        "import asyncio",
    ),
    "Inside fakeapi.controlplane.scheduler": (
        "fakeapi/controlplane/scheduler/trace.py",
        "import fakeapi.controlplane.scheduler.outfits",
    ),
    "What the scheduler thinks needs no client and no clock": (
        "fakeapi/controlplane/scheduler/sampling.py",
        "import random",
    ),
    "Inside fakeapi.demo": (
        "fakeapi/demo/sights.py",
        "import fakeapi.demo.news",
    ),
    "Inside fakeapi.replaying": (
        "fakeapi/replaying/ledger.py",
        "import fakeapi.replaying.hands",
    ),
    "Inside fakeapi.controllers.replicaset": (
        "fakeapi/controllers/replicaset/shapes.py",
        "import fakeapi.controllers.replicaset.trouble",
    ),
    "Inside fakeapi.controllers.spreading": (
        "fakeapi/controllers/spreading/written.py",
        "import fakeapi.controllers.spreading.copies",
    ),
    "Inside fakeapi.controllers.spreadwebhooks": (
        "fakeapi/controllers/spreadwebhooks/reviews.py",
        "import fakeapi.controllers.spreadwebhooks.statuses",
    ),
    "Inside fakeapi.controllers.workloadspread": (
        "fakeapi/controllers/workloadspread/copies.py",
        "import fakeapi.controllers.workloadspread.writing",
    ),
    "Controllers reach the server through a client": (
        "fakeapi/controlplane/gc.py",
        "import fakeapi.store",
    ),
    "What controllers think needs no client and no clock": (
        "fakeapi/controlplane/graph.py",
        "import asyncio",
    ),
    "Inside fakeapi.api.faulting": (
        "fakeapi/api/faulting/effects.py",
        "import fakeapi.api.faulting.plans",
    ),
    "Inside fakeapi.api": ("fakeapi/api/messages.py", "import fakeapi.api.errors"),
    "policies decide and do nothing else": ("policies/order.py", "import random"),
    "The reference engine is plain Python": ("policies/preemption.py", "import numpy"),
    "Protocols and stores hold no sockets and no clock": ("extender/wire.py", "import time"),
    "Decoders hold no sockets and ask no clock": ("extender/kube/shapes.py", "import socket"),
}
"""Contract → a file, and an import that it must not have."""

EXHAUSTIVE = {
    name: contract["containers"][0]
    for name, contract in CONTRACTS.items()
    if contract.get("exhaustive")
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and of the configuration, to be spoiled."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken(tree: Path) -> set[str]:
    """Run import-linter in ``tree`` and give the names of the contracts that it finds broken."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    ran = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", ran.stdout, re.MULTILINE))
    assert set(verdicts) == set(CONTRACTS), ran.stdout + ran.stderr
    found = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert (ran.returncode != 0) == bool(found)
    return found


def test_the_tree_keeps_every_contract(tree: Path) -> None:
    assert broken(tree) == set()


def test_every_contract_has_a_violation_to_show_for_it() -> None:
    assert set(VIOLATIONS) == set(CONTRACTS)


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_planted_import_breaks_the_contract_against_it_and_no_other(
    contract: str, tree: Path
) -> None:
    file, line = VIOLATIONS[contract]
    target = tree / file
    target.write_text(f"{target.read_text()}\n{line}\n")
    assert broken(tree) == {contract}


@pytest.mark.parametrize("contract", EXHAUSTIVE)
def test_a_new_module_must_choose_its_layer(contract: str, tree: Path) -> None:
    folder = tree.joinpath(*EXHAUSTIVE[contract].split("."))
    (folder / "newcomer.py").write_text('"""Belongs nowhere yet."""\n')
    assert broken(tree) == {contract}


def modules() -> Iterator[Path]:
    for package in (*PACKAGES, "tests"):
        yield from (ROOT / package).rglob("*.py")


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules()}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_tells_type_checkers_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_every_package_is_listed_for_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert folders == set(project["tool"]["setuptools"]["packages"])
