"""Executors in real processes: the same results for any number, with workers killed in between."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from fakeapi.backtest.executors import (
    ATTEMPTS,
    ExecutorError,
    Finished,
    Workers,
    dask_cluster,
    local_processes,
    ray_cluster,
    run_units,
)
from fakeapi.backtest.results import UnitResult
from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.units import Unit, UnitError, run_unit
from tests.builders.traces import SMALL, ending_workers, planned


def results_by_key(number: int, units: tuple[Unit, ...]) -> Mapping[str, UnitResult | None]:
    """Return the result of each unit that ran in ``number`` processes; None: it is lost."""
    with local_processes(number) as workers:
        return {unit.key: result for unit, result in run_units(workers, units, Finished())}


def test_units_of_killed_processes_run_again_with_the_same_results(tmp_path: Path) -> None:
    log = tmp_path / "log"
    units = planned(ending_workers(2, log), parts=2)
    expected = {unit.key: run_unit(unit) for unit in planned(open_trace(SMALL), parts=2)}
    assert results_by_key(2, units) == expected
    assert log.stat().st_size == 4


def test_a_unit_that_always_ends_its_process_is_lost_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (bad,), (good,) = planned(ending_workers(100, log)), planned(open_trace(SMALL))
    found = results_by_key(2, (replace(bad, seed=1), good))
    assert [result is None for key, result in found.items() if key != good.key] == [True]
    assert found[good.key] == run_unit(good)
    assert log.stat().st_size == ATTEMPTS


def test_an_error_of_a_unit_is_raised() -> None:
    (unit,) = planned(open_trace(SMALL))
    with pytest.raises(UnitError, match=r"^worker \S+: expected version 9 of reprieve, found \S+$"):
        results_by_key(1, (replace(unit, version="9"),))


@pytest.mark.parametrize(
    ("package", "extra", "connect"),
    [("distributed", "dask", dask_cluster), ("ray", "ray", ray_cluster)],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    extra: str,
    connect: Callable[[str], AbstractContextManager[Workers]],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExecutorError) as error, connect("127.0.0.1:1"):
        pass
    assert str(error.value) == (
        f"--{extra} needs the package {package}; install it with: pip install 'reprieve[{extra}]'"
    )
