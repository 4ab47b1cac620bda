"""The wheel in an empty environment, where pip installs it from the package index."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.deploy.distribution import ROOT

BLOCK: Final = 4096
"""The size of the blocks that a file occupies."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment without pip, and a directory that its commands run in."""

    home: Path
    work: Path

    def install(self, requirement: str) -> None:
        """Install a requirement with its dependencies, in the pinned versions."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.home / "bin/python")]
        options = ("--quiet", "--constraint", str(ROOT / "constraints.txt"))
        command = [*pip, "install", *options, requirement]
        done = subprocess.run(command, cwd=self.work, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def command(self, *arguments: str) -> list[str]:
        """Return the installed command with these arguments."""
        return [str(self.home / "bin/reprieve"), *arguments]

    def run(self, *arguments: str) -> str:
        """Run the installed command, which must succeed, and return its output."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.work,
            env=_environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[str]:
        """Run a server, and yield its URL; it must exit with 0 after SIGTERM."""
        command = self.command(*arguments, "--port", "0")
        with (
            (self.work / "errors").open("w") as errors,
            subprocess.Popen(
                command,
                cwd=self.work,
                env=_environ(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as server,
        ):
            assert server.stdout is not None
            try:
                line = server.stdout.readline()
                assert line.startswith("listening on http://127.0.0.1:"), self.errors()
                yield line.split()[-1]
            finally:
                server.send_signal(signal.SIGTERM)
                server.communicate()
        assert server.returncode == 0, self.errors()

    def errors(self) -> str:
        """Return what the last server logged."""
        return (self.work / "errors").read_text()

    def size(self, *, bytecode: bool) -> int:
        """Return the size of the installed packages in bytes, in whole blocks."""
        [packages] = self.home.glob("lib/python*/site-packages")
        files = (path for path in packages.rglob("*") if path.is_file())
        sizes = (path.stat().st_size for path in files if bytecode or path.suffix != ".pyc")
        return sum(-(-size // BLOCK) * BLOCK for size in sizes)


def empty_environment(directory: Path) -> Environment:
    """Create a virtual environment, and an empty directory beside it."""
    home, work = directory / "environment", directory / "work"
    work.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    return Environment(home, work)


def _environ() -> dict[str, str]:
    """Return an environment in which nothing of the checkout is found."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
