"""The file system and user of a container, without a container engine.

The root is an unpacked image. Mounts exist as long as its process, which has its own mount
namespace; only their empty mount points stay in the tree.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_HOSTS: Final = "127.0.0.1 localhost"


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of this machine that is mounted at ``target``."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """The user of a process; ``groups`` are its supplementary groups."""

    uid: int = 0
    gid: int = 0
    groups: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ContainerRoot:
    """``tree`` is the root directory, to which mount points are added.

    ``hosts`` are names of 127.0.0.1, and ``programs`` are mounted into /usr/local/bin.
    """

    tree: Path
    user: User = User()
    mounts: Sequence[Mount] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    hosts: Sequence[str] = ()
    programs: Mapping[str, Path] = field(default_factory=dict)
    read_only: bool = True
    confined: bool = True

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs another with this root, in the same process."""
        script = "\n".join(
            ["set -eu", *self._steps(), f"exec {shlex.join(self._entry(arguments))}"]
        )
        return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script]

    def _steps(self) -> Iterator[str]:
        tree = shlex.quote(str(self.tree))
        yield f"mount --bind {tree} {tree}"
        for name in ("dev", "proc"):
            yield f"mount --rbind /{name} {tree}/{name}"
        yield from self._hosts()
        for name, program in self.programs.items():
            yield from self._mount(Mount(program, f"/usr/local/bin/{name}"))
        for mount in self.mounts:
            yield from self._mount(mount)
        if self.read_only:
            yield f"mount -o remount,bind,ro {tree}"

    def _hosts(self) -> Iterator[str]:
        """Return the commands that mount a file at /etc/hosts, of this container alone."""
        tree = shlex.quote(str(self.tree))
        yield f"mount -t tmpfs none {tree}/mnt"
        yield f"echo {shlex.quote(' '.join([_HOSTS, *self.hosts]))} > {tree}/mnt/hosts"
        yield f"touch {tree}/etc/hosts"
        yield f"mount --bind {tree}/mnt/hosts {tree}/etc/hosts"
        yield f"umount {tree}/mnt"

    def _mount(self, mount: Mount) -> Iterator[str]:
        target = shlex.quote(str(_within(self.tree, mount.target)))
        source = shlex.quote(str(mount.source))
        if mount.source.is_dir():
            yield f"mkdir -p {target}"
        else:
            yield f"mkdir -p $(dirname {target}) && touch {target}"
        yield f"mount --bind {source} {target}"
        if not mount.writable:
            yield f"mount -o remount,bind,ro {target}"

    def _entry(self, arguments: Sequence[str]) -> list[str]:
        user = self.user
        groups = ",".join(map(str, user.groups))
        entry = ["chroot", str(self.tree), "setpriv", f"--reuid={user.uid}", f"--regid={user.gid}"]
        entry += [f"--groups={groups}" if groups else "--clear-groups"]
        if self.confined:
            entry += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        environment = {"HOME": "/", **self.environment}
        named = [f"{name}={value}" for name, value in environment.items()]
        return [*entry, "env", f"--chdir={self.directory}", "-i", *named, *arguments]


def _within(tree: Path, target: str) -> Path:
    """Return a path of a root file system, whose symbolic links (/var/run) lead into that root."""
    path = tree
    for name in Path(target).relative_to("/").parts:
        path /= name
        if path.is_symlink():
            leads = path.readlink()
            path = tree / leads.relative_to("/") if leads.is_absolute() else path.parent / leads
    return path
