"""Memory capacity, usage and availability, as computed by the kubelet.

    working set = usage - inactive_file (immediately reclaimable), not below 0
    capacity    = the machine's, or the group's limit if that is smaller
    available   = capacity - working set, not below 0

                   usage                      inactive_file                  limit
    cgroup v1      memory.usage_in_bytes      memory.stat total_inactive_…   memory.limit_in_bytes
    cgroup v2      memory.current             memory.stat inactive_file      memory.max
    v2, machine    anon + file of its stat    memory.stat inactive_file      none
    no cgroup      MemTotal - MemFree         Inactive(file)                 none

Sources: setMemoryStats in cadvisor's container/libcontainer/handler.go; cadvisorInfoToMemoryStats
in pkg/kubelet/stats/helper.go; rootStatsFromMeminfo in opencontainers/cgroups fs2/memory.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.memory.groups import Cgroup, CgroupVersion, MemoryReadError
from policies.eviction.stats import MemoryStats

_KIB: Final = 1024
_UNLIMITED: Final = "max"


@dataclass(frozen=True, slots=True)
class MemoryReader:
    """Measures one group, or the machine without one; ``proc`` is the mount point of procfs."""

    proc: Path
    cgroup: Cgroup | None

    def read(self, now_ns: int) -> MemoryStats:
        """Return the current measurements. Raise MemoryReadError."""
        machine = _table(self.proc / "meminfo")
        total = _value_of(machine, "MemTotal:", self.proc / "meminfo") * _KIB
        if self.cgroup is None:
            usage = total - _value_of(machine, "MemFree:", self.proc / "meminfo") * _KIB
            idle = _value_of(machine, "Inactive(file):", self.proc / "meminfo") * _KIB
            return _stats(total, usage, idle, now_ns)
        usage, idle, limit = _MEASURES[self.cgroup.version](self.cgroup)
        return _stats(total if limit is None else min(limit, total), usage, idle, now_ns)


def _stats(capacity: int, usage: int, idle: int, now_ns: int) -> MemoryStats:
    working_set = max(0, usage - idle)
    return MemoryStats(max(0, capacity - working_set), working_set, usage, now_ns)


def _version_one(group: Cgroup) -> tuple[int, int, int | None]:
    """Return usage, inactive files and limit."""
    stat = group.directory / "memory.stat"
    return (
        _number(group.directory / "memory.usage_in_bytes"),
        _value_of(_table(stat), "total_inactive_file", stat),
        _number(group.directory / "memory.limit_in_bytes"),
    )


def _version_two(group: Cgroup) -> tuple[int, int, int | None]:
    """Return usage, inactive files and limit; the root group only has memory.stat."""
    stat = group.directory / "memory.stat"
    counted = _table(stat)
    idle = _value_of(counted, "inactive_file", stat)
    current = group.directory / "memory.current"
    if group.is_root and not current.exists():
        return _value_of(counted, "anon", stat) + _value_of(counted, "file", stat), idle, None
    most = group.directory / "memory.max"
    limit = None if _read_decimal_text(most).strip() == _UNLIMITED else _number(most)
    return _number(current), idle, limit


_MEASURES: Final = {CgroupVersion.ONE: _version_one, CgroupVersion.TWO: _version_two}


def _table(path: Path) -> Mapping[str, str]:
    """Parse lines of a name and a number."""
    lines = (line.split() for line in _read_decimal_text(path).splitlines())
    return {fields[0]: fields[1] for fields in lines if len(fields) > 1}


def _value_of(table: Mapping[str, str], name: str, path: Path) -> int:
    if name not in table:
        raise MemoryReadError(f"{path}: expected a line {name}")
    return _parse_whole(table[name], path)


def _number(path: Path) -> int:
    return _parse_whole(_read_decimal_text(path), path)


def _parse_whole(text: str, path: Path) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise MemoryReadError(f"{path}: expected a whole number, got {digits[:40]!r}")
    return int(digits)


def _read_decimal_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a text"
        raise MemoryReadError(f"{path}: cannot be read: {problem}") from None
