"""Lookup of the control group that accounts for memory, of version 1 or 2.

    /proc/self/mountinfo   where the hierarchies are mounted
    /proc/self/cgroup      the groups of this process, one per hierarchy

A machine can have both versions; memory is in one of them. The group at the mount point of the
hierarchy represents the whole machine (in a container: the container); the kubelet reads it for
``memory.available``. ``/kubepods`` or ``/kubepods.slice`` contain all pods.

Sources: proc_pid_mountinfo(5), cgroups(7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

ROOT_CGROUP: Final = "/"
"""The group at the mount point of the hierarchy."""

OWN_CGROUP: Final = "self"
"""The group of this process."""

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
            raise MemoryReadError(f"--cgroup: {name}: no control groups account for memory here")
        return None
    inside = _own_path(_text(proc / "self/cgroup"), mount) if name == OWN_CGROUP else name
    directory = mount.directory / inside.strip("/")
    if not directory.is_dir():
        raise MemoryReadError(f"--cgroup: {name}: no such control group: {directory}")
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
    raise MemoryReadError(f"--cgroup: {OWN_CGROUP}: this process is in no control group of memory")


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
