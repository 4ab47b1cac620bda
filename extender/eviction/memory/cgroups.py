"""The control group that accounts for memory, of version 1 or 2, and its measurements.

    /proc/self/mountinfo   where the hierarchies are mounted
    /proc/self/cgroup      the groups of this process, one per hierarchy

A machine can have both versions; memory is in one of them. The group at the mount point of the
hierarchy represents the whole machine (in a container: the container); the kubelet reads it for
``memory.available``. ``/kubepods`` or ``/kubepods.slice`` contain all pods. Capacity, usage and
availability are computed as by the kubelet:

    working set = usage - inactive_file (immediately reclaimable), not below 0
    capacity    = the machine's, or the group's limit if that is smaller
    available   = capacity - working set, not below 0

                   usage                      inactive_file                  limit
    cgroup v1      memory.usage_in_bytes      memory.stat total_inactive_…   memory.limit_in_bytes
    cgroup v2      memory.current             memory.stat inactive_file      memory.max
    v2, machine    anon + file of its stat    memory.stat inactive_file      none
    no cgroup      MemTotal - MemFree         Inactive(file)                 none

Sources: proc_pid_mountinfo(5), cgroups(7); setMemoryStats in cadvisor's
container/libcontainer/handler.go; cadvisorInfoToMemoryStats in pkg/kubelet/stats/helper.go;
rootStatsFromMeminfo in opencontainers/cgroups fs2/memory.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from policies.eviction.stats import MemoryStats
from policies.kubernetes.integers import UINT64_MAX, parse_integer

ROOT_CGROUP: Final = "/"
"""The group at the mount point of the hierarchy."""

OWN_CGROUP: Final = "self"
"""The group of this process."""

_KIB: Final = 1024
_UNLIMITED: Final = "max"
_CONTROLLER: Final = "memory"
_ESCAPED: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


class MemoryReadError(Exception):
    """The machine's memory cannot be measured; the text names the file and the reason."""


class CgroupVersion(Enum):
    """The version of a control group."""

    ONE = "cgroup v1"
    TWO = "cgroup v2"


@dataclass(frozen=True, slots=True)
class Cgroup:
    """A control group that accounts for memory; ``is_root`` if it is the root of the hierarchy."""

    version: CgroupVersion
    directory: Path
    is_root: bool = True


def find_cgroup(proc: Path, name: str = ROOT_CGROUP) -> Cgroup | None:
    """Return the group called ``name``; None if no hierarchy accounts for memory.

    ``proc`` is the mount point of procfs. Raise MemoryReadError if the group does not exist, or if
    procfs cannot be read.
    """
    mount = _mount(_text(proc / "self/mountinfo"))
    if mount is None:
        if name != ROOT_CGROUP:
            raise MemoryReadError(f"--cgroup: {name}: no memory cgroups are mounted")
        return None
    inside = _own_path(_text(proc / "self/cgroup"), mount) if name == OWN_CGROUP else name
    directory = mount.directory / inside.strip("/")
    if not directory.is_dir():
        raise MemoryReadError(f"--cgroup: {name}: no such cgroup: {directory}")
    return Cgroup(mount.version, directory, directory == mount.directory)


@dataclass(frozen=True, slots=True)
class _CgroupMount:
    """A hierarchy, and the group at its mount point."""

    version: CgroupVersion
    directory: Path
    group: str


def _mount(mountinfo: str) -> _CgroupMount | None:
    """Return the hierarchy that accounts for memory."""
    return next((each for each in _mounts(mountinfo) if _has_memory_controller(each)), None)


def _mounts(mountinfo: str) -> Iterator[_CgroupMount]:
    """Yield the hierarchies that can account for memory, those of version 1 first."""
    unified = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, *rest) = before.split(), after.split() or [""]
        if len(fields) < 5:
            continue
        group, directory = _unescape(fields[3]), Path(_unescape(fields[4]))
        if kind == "cgroup" and _CONTROLLER in rest[-1].split(","):
            yield _CgroupMount(CgroupVersion.ONE, directory, group)
        elif kind == "cgroup2":
            unified.append(_CgroupMount(CgroupVersion.TWO, directory, group))
    yield from unified


def _has_memory_controller(mount: _CgroupMount) -> bool:
    """Return whether a hierarchy has the memory controller; one of version 2 may lack it."""
    controllers = mount.directory / "cgroup.controllers"
    if mount.version is CgroupVersion.ONE:
        return True
    return controllers.is_file() and _CONTROLLER in _text(controllers).split()


def _own_path(cgroup: str, mount: _CgroupMount) -> str:
    """Return this process's group, relative to the mount point of the hierarchy."""
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        unified = number == "0" and not controllers
        of_memory = _CONTROLLER in controllers.split(",")
        if unified if mount.version is CgroupVersion.TWO else of_memory:
            return path.removeprefix(mount.group.rstrip("/"))
    raise MemoryReadError(f"--cgroup: {OWN_CGROUP}: this process is in no memory cgroup")


def _unescape(text: str) -> str:
    """Unescape spaces, tabs, newlines and backslashes of mountinfo."""
    for escaped, plain in _ESCAPED:
        text = text.replace(escaped, plain)
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError as error:
        raise MemoryReadError(f"{path}: cannot be read: {error.strerror}") from None


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
    number = parse_integer(digits, UINT64_MAX) if digits.isdigit() else None
    if number is None:
        raise MemoryReadError(f"{path}: expected a whole number, got {digits[:40]!r}")
    return number


def _read_decimal_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a text"
        raise MemoryReadError(f"{path}: cannot be read: {problem}") from None
