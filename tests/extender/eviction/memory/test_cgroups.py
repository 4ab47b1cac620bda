"""The cgroup that accounts memory, and the available amount."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from extender.eviction.memory.cgroups import (
    CgroupVersion,
    MemoryReader,
    MemoryReadError,
    find_cgroup,
)
from policies.eviction.stats import MemoryStats
from tests.extender.eviction.memory.kernel_files import (
    KIB,
    MIB,
    MOUNT,
    TOTAL,
    bare,
    hybrid,
    put,
    unified,
)

Machine = Callable[[Path], Path]


def measured(machine: Machine, tmp_path: Path, name: str = "/") -> MemoryStats:
    proc = machine(tmp_path)
    return MemoryReader(proc, find_cgroup(proc, name)).read(7)


def stats(usage: int, idle: int, capacity: int) -> MemoryStats:
    return MemoryStats(capacity - (usage - idle), usage - idle, usage, 7)


@pytest.mark.parametrize(
    ("machine", "name", "expected"),
    [
        (hybrid, "/", stats(3270885376, 100 * MIB, TOTAL)),
        (hybrid, "/work", stats(200 * MIB, 100 * MIB, 512 * MIB)),
        (hybrid, "self", stats(200 * MIB, 100 * MIB, 512 * MIB)),
        (unified, "/", stats(4096 * MIB, 500 * MIB, TOTAL)),
        (unified, "/kubepods.slice", stats(2 * 2**30, 147483648, TOTAL)),
        (unified, "self", stats(2 * 2**30, 147483648, TOTAL)),
        (bare, "/", stats((24684084 - 20340784) * KIB, 1099028 * KIB, TOTAL)),
    ],
)
def test_available_memory_is_capacity_less_working_set(
    machine: Machine, name: str, expected: MemoryStats, tmp_path: Path
) -> None:
    assert measured(machine, tmp_path, name) == expected


def test_limits_bound_the_available_memory(tmp_path: Path) -> None:
    proc = unified(tmp_path)
    put(tmp_path, {"cgroup/kubepods.slice/memory.max": "3221225472\n"})
    found = MemoryReader(proc, find_cgroup(proc, "/kubepods.slice")).read(7)
    assert found == stats(2 * 2**30, 147483648, 3 * 2**30)


def test_amounts_are_never_negative(tmp_path: Path) -> None:
    proc = hybrid(tmp_path)
    put(tmp_path, {"cgroup/memory/memory.usage_in_bytes": "5\n"})
    assert MemoryReader(proc, find_cgroup(proc)).read(7) == MemoryStats(TOTAL, 0, 5, 7)
    put(tmp_path, {"cgroup/memory/work/memory.limit_in_bytes": "5\n"})
    assert MemoryReader(proc, find_cgroup(proc, "/work")).read(7).available == 0


def test_version_one_is_preferred_and_version_two_needs_the_controller(tmp_path: Path) -> None:
    found = find_cgroup(hybrid(tmp_path))
    assert found is not None
    assert found.version is CgroupVersion.ONE
    alone = MOUNT.format(group="/", place=tmp_path / "cgroup/unified", kind="cgroup2", more="")
    assert find_cgroup(bare(tmp_path, alone)) is None


def test_a_container_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    put(tmp_path, {"cgroup/memory.stat": "", "cgroup/memory.current": "1"})
    mount = MOUNT.format(
        group="/docker/a\\040b", place=tmp_path / "cgroup", kind="cgroup", more=",memory"
    )
    found = find_cgroup(bare(tmp_path, mount, "4:memory:/docker/a b\n"), "self")
    assert found is not None
    assert (found.directory, found.is_root) == (tmp_path / "cgroup", True)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        ({"proc/meminfo": ""}, "/proc/meminfo: expected a line MemTotal:"),
        ({"proc/meminfo": "MemTotal: some kB\n"}, "/proc/meminfo: expected a whole number, got "),
        ({"cgroup/memory/memory.stat": "x 1"}, "memory.stat: expected a line total_inactive_file"),
        ({"cgroup/memory/memory.usage_in_bytes": "-1"}, "expected a whole number, got '-1'"),
    ],
)
def test_an_unmeasurable_value_is_reported_in_one_line(
    spoil: dict[str, str], error: str, tmp_path: Path
) -> None:
    proc = hybrid(tmp_path)
    put(tmp_path, spoil)
    with pytest.raises(MemoryReadError) as caught:
        MemoryReader(proc, find_cgroup(proc)).read(7)
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("machine", "name", "error"),
    [
        (hybrid, "/nowhere", "--cgroup: /nowhere: no such cgroup: "),
        (bare, "/work", "--cgroup: /work: no memory cgroups are mounted"),
        (lambda tmp: tmp, "/", "self/mountinfo: cannot be read: No such file or directory"),
    ],
)
def test_a_missing_cgroup_is_named(machine: Machine, name: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(MemoryReadError) as caught:
        find_cgroup(machine(tmp_path), name)
    assert error in str(caught.value)


def test_a_process_outside_every_cgroup_is_reported(tmp_path: Path) -> None:
    proc = hybrid(tmp_path)
    put(proc, {"self/cgroup": "0::/\n"})
    with pytest.raises(MemoryReadError, match="this process is in no memory cgroup"):
        find_cgroup(proc, "self")


def test_a_removed_cgroup_is_reported(tmp_path: Path) -> None:
    proc = hybrid(tmp_path)
    gauge = MemoryReader(proc, find_cgroup(proc, "/work"))
    (tmp_path / "cgroup/memory/work/memory.usage_in_bytes").unlink()
    with pytest.raises(
        MemoryReadError, match=r"memory\.usage_in_bytes: cannot be read: No such file"
    ):
        gauge.read(7)
