"""Backtests on a Dask and a Ray cluster: the same results as here, with workers killed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from fakeapi.backtest.executors import Finished, Workers, dask_cluster, ray_cluster, run_units
from fakeapi.backtest.results import UnitResult
from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.units import Unit, UnitError, run_unit
from tests.builders.traces import SMALL, ending_workers, planned
from tests.commands import reprieve

BACKTEST = ("backtest", SMALL, "--seeds", "2", "--drain", "1h", "-o", "json")

Connect = Callable[[str], AbstractContextManager[Workers]]

# Warnings of these packages are not errors here.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", params=["dask", "ray"])
def cluster(request: pytest.FixtureRequest) -> tuple[str, str, Connect]:
    """The option and address of a cluster, and what connects to it."""
    connect = {"dask": dask_cluster, "ray": ray_cluster}[request.param]
    address = request.getfixturevalue(f"{request.param}_address")
    return f"--{request.param}", address, connect


def results_by_key(
    cluster: tuple[str, str, Connect], units: tuple[Unit, ...]
) -> Mapping[str, UnitResult | None]:
    """Return the result of each unit that ran on a cluster; None: it is lost."""
    _, address, connect = cluster
    with connect(address) as workers:
        return {unit.key: result for unit, result in run_units(workers, units, Finished())}


async def test_the_report_is_the_same_as_of_local_processes(
    cluster: tuple[str, str, Connect],
) -> None:
    option, address, _ = cluster
    local = await reprieve(*BACKTEST)
    there = await reprieve(*BACKTEST, option, address)
    assert there.code == 0, there.err
    assert there.out == local.out


def test_units_of_killed_workers_run_again_with_the_same_results(
    cluster: tuple[str, str, Connect], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    units = planned(ending_workers(2, log), ("stock", "kube-scheduler"), parts=2)
    same = planned(open_trace(SMALL), ("stock", "kube-scheduler"), parts=2)
    assert results_by_key(cluster, units) == {unit.key: run_unit(unit) for unit in same}
    assert log.stat().st_size == 6


def test_a_unit_that_always_ends_its_worker_is_lost(
    cluster: tuple[str, str, Connect], tmp_path: Path
) -> None:
    (unit,) = planned(ending_workers(100, tmp_path / "log"))
    assert results_by_key(cluster, (unit,)) == {unit.key: None}


def test_an_error_of_a_unit_is_one_line(cluster: tuple[str, str, Connect]) -> None:
    (unit,) = planned(open_trace(SMALL))
    with pytest.raises(UnitError) as error:
        results_by_key(cluster, (replace(unit, version="9"),))
    (line,) = error.value.errors
    assert line.startswith("worker ")
    assert "expected version 9 of reprieve, found " in line


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("option", "address", "error"),
    [
        ("--dask", "127.0.0.1:1", "Timed out trying to connect to tcp://127.0.0.1:1 after 5 s"),
        ("--dask", "127.0.0.1:SILENT", "no answer within 20 s"),
        ("--dask", "nowhere", "missing port number in address 'nowhere'"),
        ("--ray", "127.0.0.1:1", "no connection: Connection refused"),
        ("--ray", "nowhere", "expected HOST:PORT"),
        ("--ray", "127.0.0.1:99999", "no connection: "),
        ("--ray", "host.invalid:6379", "no connection: "),
    ],
)
async def test_a_cluster_that_does_not_answer_is_one_line(
    silent_port: int, option: str, address: str, error: str
) -> None:
    address = address.replace("SILENT", str(silent_port))
    done = await reprieve(*BACKTEST, option, address)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"reprieve: {option} {address}: ")
    assert error in line
