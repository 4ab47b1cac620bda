"""The import contracts of pyproject.toml hold, and reject imports that violate them.

The import graph is built once. Each test adds an import or a module to a copy of it in memory.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("policies", "extender", "fakeapi")
CONFIGURATION: Final = read_configuration(str(ROOT / "pyproject.toml"))
CONTRACTS: Final[dict[str, dict[str, Any]]] = {
    contract["name"]: contract for contract in CONFIGURATION["contracts_options"]
}
TYPES: Final = {
    contract.type_name: contract
    for contract in (AcyclicSiblingsContract, ForbiddenContract, LayersContract)
}

VIOLATIONS: Final = (
    (
        "fakeapi stands on extender, extender on policies",
        "policies.kubernetes.snapshot",
        "extender.kube.rest.clock",
    ),
    (
        "No cycles among the files and folders of any folder",
        "policies.preemption.filtering.status",
        "policies.preemption.filtering.node_name",
    ),
    ("Inside extender", "extender.cluster.scheduler_cache", "extender.server.service"),
    (
        "Inside fakeapi.apiserver",
        "fakeapi.apiserver.store.object_store",
        "fakeapi.apiserver.registry.generic_registry",
    ),
    (
        "Inside policies.preemption",
        "policies.preemption.victims.victim_selection",
        "policies.preemption.vectorized.engine",
    ),
    ("OpenTelemetry is known in one place", "extender.observability.metrics", "opentelemetry"),
    ("The Model Context Protocol is known in one place", "extender.mcp.tools", "mcp"),
    ("Results of tools hold no sockets and no clock", "extender.mcp.results", "time"),
    ("policies decide and do nothing else", "policies.kubernetes.quantity", "random"),
    (
        "The reference engine is plain Python",
        "policies.preemption.reference_engine",
        "policies.preemption.columns.node_columns",
    ),
    ("Protocols and stores hold no sockets and no clock", "extender.protocol.verbs", "time"),
    (
        "Controllers reach the server through a client",
        "fakeapi.controlplane.controllers.garbage_collector",
        "fakeapi.apiserver.store.object_store",
    ),
)
"""Contracts, each with a module and an import that it must not have."""

EXHAUSTIVE: Final = ("Inside extender", "Inside policies.preemption")
"""Contracts that every new module of their folder has to be added to."""

HEAVY: Final = ("aiohttp", "asyncio", "kubernetes_asyncio", "msgspec", "numpy", "rich", "structlog")
"""Packages that the list of commands does not need."""

_COMMAND: Final = """
import sys
from fakeapi.cli.root_command import main
sys.argv = ["reprieve", sys.argv[1], "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
print("modules:", *sys.modules)
"""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def is_kept(contract: str, graph: grimp.ImportGraph) -> bool:
    """Return whether the import graph complies with a contract."""
    options = CONTRACTS[contract]
    checked = TYPES[options["type"]](contract, CONFIGURATION["session_options"], options)
    return checked.check(deepcopy(graph), verbose=False).kept


def test_the_packages_keep_every_contract(graph: grimp.ImportGraph) -> None:
    assert [contract for contract in CONTRACTS if not is_kept(contract, graph)] == []


@pytest.mark.parametrize(("contract", "importer", "imported"), VIOLATIONS)
def test_an_import_breaks_the_contract_against_it(
    contract: str, importer: str, imported: str, graph: grimp.ImportGraph
) -> None:
    assert {importer, imported} <= graph.modules
    spoiled = deepcopy(graph)
    spoiled.add_import(importer=importer, imported=imported)
    assert not is_kept(contract, spoiled)


@pytest.mark.parametrize("contract", EXHAUSTIVE)
def test_a_new_module_must_choose_its_layer(contract: str, graph: grimp.ImportGraph) -> None:
    [folder] = CONTRACTS[contract]["containers"]
    spoiled = deepcopy(graph)
    spoiled.add_module(f"{folder}.newcomer")
    assert not is_kept(contract, spoiled)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "loads", "spares"),
    [
        (
            "controllers",
            "extender.controllers.process.command",
            ("fakeapi.apiserver", "fakeapi.simulation", "fakeapi.testing"),
        ),
        # Its 839 modules cost 40 MiB and a third of a second.
        ("fakeapi", "fakeapi.apiserver.serving.http_server", ("kubernetes_asyncio",)),
        ("record", "extender.recording.command", ("kubernetes_asyncio", "fakeapi.apiserver")),
        (
            "serve",
            "extender.server.process",
            ("extender.cel", "fakeapi.apiserver", "fakeapi.testing", "pydantic"),
        ),
        ("mcp", "extender.cli.mcp_command", ("fakeapi.apiserver", "mcp", "pydantic", "uvicorn")),
        ("--version", "extender.terminal.command_groups", HEAVY),
        ("explain", "extender.terminal.command_groups", ("extender.explain", "numpy")),
    ],
)
def test_a_command_loads_only_what_it_needs(
    command: str, loads: str, spares: tuple[str, ...]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _COMMAND, command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = ran.stdout.rpartition("modules:")[2].split()
    assert loads in loaded
    assert [module for module in loaded if module.startswith(spares)] == []


def modules() -> Iterator[Path]:
    for package in (*PACKAGES, "tests"):
        yield from (ROOT / package).rglob("*.py")


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules()}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_a_py_typed_file(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_every_folder_of_modules_is_a_package_of_the_distribution() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
