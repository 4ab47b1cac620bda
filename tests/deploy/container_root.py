"""The file system and user of a container, without a container engine.

The contents of the base image (libraries, tools, the interpreter) are this machine's, mounted
read-only. The file system exists as long as its process, which has its own mount namespace.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PATH: Final = "/base/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of a container; /base/bin has ``python``."""

_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "usr")
_SETTINGS: Final = (
    "alternatives", "ca-certificates", "group", "ld.so.cache", "nsswitch.conf", "passwd",
    "resolv.conf", "ssl",
)  # fmt: skip
_HOSTS: Final = "127.0.0.1 localhost"
_LIBRARY: Final = "python{}.{}".format(*sys.version_info)


def site_packages() -> list[Path]:
    """Return the package directories of this interpreter, which no base image has."""
    usual = [Path(sys.base_prefix, "lib", _LIBRARY, "site-packages")]
    debian = ("/usr/lib/python3/dist-packages", f"/usr/local/lib/{_LIBRARY}/dist-packages")
    return [path for path in (*usual, *map(Path, debian)) if path.is_dir()]


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
    """``tree`` is the root directory, to which mounts and mount points are added.

    ``hosts`` are names of 127.0.0.1, ``programs`` are put next to python, and ``hidden`` are
    directories of this machine that are empty in the container.
    """

    tree: Path
    user: User = User()
    mounts: Sequence[Mount] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    hosts: Sequence[str] = ()
    programs: Mapping[str, Path] = field(default_factory=dict)
    hidden: Sequence[Path] = ()
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
        for name in _SYSTEM:
            host = Path("/") / name
            if host.is_symlink():
                leads = shlex.quote(str(host.readlink()))
                yield f"[ -L {tree}/{name} ] || ln -s {leads} {tree}/{name}"
            elif host.exists():
                yield from self._mount(Mount(host, f"/{name}"))
        for name in ("dev", "proc"):
            yield f"mkdir -p {tree}/{name}"
            yield f"mount --rbind /{name} {tree}/{name}"
        yield from self._settings()
        interpreter = Path(sys.base_prefix)
        if not interpreter.is_relative_to("/usr"):
            yield from self._mount(Mount(interpreter, str(interpreter)))
        yield from self._programs(interpreter / "bin" / "python3")
        for directory in self.hidden:
            yield shlex.join(["mount", "-t", "tmpfs", "none", f"{self.tree}{directory}"])
        for mount in self.mounts:
            yield from self._mount(mount)
        if self.read_only:
            yield f"mount -o remount,bind,ro {tree}"

    def _settings(self) -> Iterator[str]:
        """Return the commands that create /etc."""
        etc = shlex.quote(f"{self.tree}/etc")
        yield f"mkdir -p {etc}"
        yield f"mount -t tmpfs -o mode=755 none {etc}"
        for name in _SETTINGS:
            yield f"[ ! -e /etc/{name} ] || cp -aH /etc/{name} {etc}/"
        yield f"echo {shlex.quote(' '.join([_HOSTS, *self.hosts]))} > {etc}/hosts"

    def _programs(self, python: Path) -> Iterator[str]:
        base = f"{self.tree}/base"
        yield f"mkdir -p {shlex.quote(base)}"
        yield f"mount -t tmpfs -o mode=755 none {shlex.quote(base)}"
        yield f"mkdir {shlex.quote(base)}/bin"
        yield shlex.join(["ln", "-s", str(python), f"{base}/bin/python"])
        for name, program in self.programs.items():
            yield from self._mount(Mount(program, f"/base/bin/{name}"))

    def _mount(self, mount: Mount) -> Iterator[str]:
        target = shlex.quote(f"{self.tree}{mount.target}")
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
        environment = {"PATH": PATH, "HOME": "/", **self.environment}
        named = [f"{name}={value}" for name, value in environment.items()]
        return [*entry, "env", f"--chdir={self.directory}", "-i", *named, *arguments]
