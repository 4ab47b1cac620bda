"""Where the kernel keeps its accounts of memory: in a control group of version 1 or 2, or in none.

    /proc/self/mountinfo   where the hierarchies are mounted
    /proc/self/cgroup      which group of each of them this process is in

A machine may have both versions; memory is in one of them. The group at which the hierarchy is
mounted stands for the whole machine (in a container: for the container); it is what a kubelet looks
at for ``memory.available``. ``/kubepods`` or ``/kubepods.slice`` are all pods together.

Sources: proc_pid_mountinfo(5), cgroups(7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

MACHINE: Final = "/"
"""The group at which the hierarchy is mounted."""

OWN: Final = "self"
"""The group that this process is in."""

_CONTROLLER: Final = "memory"
_ESCAPED: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


class MeasureError(Exception):
    """The machine's memory cannot be measured; the text names the file, and why."""


class Version(Enum):
    """How a control group is to be read."""

    ONE = "cgroup v1"
    TWO = "cgroup v2"


@dataclass(frozen=True, slots=True)
class Group:
    """A control group that accounts for memory; ``machine`` if it is the hierarchy's first."""

    version: Version
    directory: Path
    machine: bool = True


def find_group(proc: Path, name: str = MACHINE) -> Group | None:
    """Find the group called ``name``; None if no hierarchy accounts for memory.

    ``proc`` is where procfs is mounted. Raises MeasureError for a group that is not there, or if
    procfs cannot be read.
    """
    mount = _mount(_text(proc / "self/mountinfo"))
    if mount is None:
        if name != MACHINE:
            raise MeasureError(f"--cgroup: {name}: no control groups account for memory here")
        return None
    inside = _own(_text(proc / "self/cgroup"), mount) if name == OWN else name
    directory = mount.directory / inside.strip("/")
    if not directory.is_dir():
        raise MeasureError(f"--cgroup: {name}: no such control group: {directory}")
    return Group(mount.version, directory, directory == mount.directory)


@dataclass(frozen=True, slots=True)
class _Mount:
    """A hierarchy, and which of its groups is at the place where it is mounted."""

    version: Version
    directory: Path
    group: str


def _mount(mountinfo: str) -> _Mount | None:
    """Return the hierarchy that memory is in."""
    return next((each for each in _mounts(mountinfo) if _accounts(each)), None)


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """Return the hierarchies that may account for memory, those of version 1 first."""
    unified = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, *rest) = before.split(), after.split() or [""]
        if len(fields) < 5:
            continue
        group, directory = _plain(fields[3]), Path(_plain(fields[4]))
        if kind == "cgroup" and _CONTROLLER in rest[-1].split(","):
            yield _Mount(Version.ONE, directory, group)
        elif kind == "cgroup2":
            unified.append(_Mount(Version.TWO, directory, group))
    yield from unified


def _accounts(mount: _Mount) -> bool:
    """Return whether a hierarchy has memory in it: one of version 2 may do without."""
    controllers = mount.directory / "cgroup.controllers"
    if mount.version is Version.ONE:
        return True
    return controllers.is_file() and _CONTROLLER in _text(controllers).split()


def _own(cgroup: str, mount: _Mount) -> str:
    """Return this process's group, below the place where the hierarchy is mounted."""
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        unified = number == "0" and not controllers
        of_memory = _CONTROLLER in controllers.split(",")
        if unified if mount.version is Version.TWO else of_memory:
            return path.removeprefix(mount.group.rstrip("/"))
    raise MeasureError(f"--cgroup: {OWN}: this process is in no control group of memory")


def _plain(text: str) -> str:
    """Undo how mountinfo writes spaces, tabs, newlines and backslashes."""
    for escaped, plain in _ESCAPED:
        text = text.replace(escaped, plain)
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError as error:
        raise MeasureError(f"{path}: cannot be read: {error.strerror}") from None
