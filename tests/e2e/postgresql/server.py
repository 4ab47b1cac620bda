"""A real PostgreSQL server on a free port of 127.0.0.1, from Debian's package ``postgresql``.

It does not run as root, so tests that do run it as the package's user.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import asyncpg

PASSWORD: Final = "p@ss/word"
_QUOTED: Final = "p%40ss%2Fword"
_OWNER: Final = "postgres"


@dataclass(frozen=True, slots=True)
class PostgresqlServer:
    """A server with its files in a directory."""

    binaries: Path
    directory: Path
    port: int

    def url(self, database: str) -> str:
        """Return the URL of a database, with the password."""
        return f"postgresql://{_OWNER}:{_QUOTED}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and return when it accepts connections."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.directory} -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._log, "-o", options)

    def stop(self) -> None:
        """Stop it at once, as if the machine were switched off."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self._data)

    def make(self) -> None:
        """Make its files."""
        password = self.directory / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (self.directory, password):
                shutil.chown(path, _OWNER, _OWNER)
        self._run(
            "initdb", "-U", _OWNER, "-A", "scram-sha-256", f"--pwfile={password}", "-D", self._data
        )

    async def make_database(self, name: str) -> str:
        """Make an empty database, and return its URL."""
        connection = await asyncpg.connect(self.url(_OWNER))
        await connection.execute(f'CREATE DATABASE "{name}"')
        await connection.close()
        return self.url(name)

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    @property
    def _log(self) -> str:
        return str(self.directory / "log")

    def _run(self, program: str, *arguments: str) -> None:
        as_owner = ("setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--init-groups")
        command = [str(self.binaries / program), *arguments]
        if os.geteuid() == 0:
            command = [*as_owner, *command]
        done = subprocess.run(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps it open
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Run a server until the block ends."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert found, "needs PostgreSQL: apt-get install postgresql"
    with TemporaryDirectory(prefix="postgresql-") as name, socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = int(reserved.getsockname()[1])
        reserved.close()
        server = PostgresqlServer(found[-1], Path(name), port)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
