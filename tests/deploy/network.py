"""A network namespace with only a loopback device, so that the ports of manifests are free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

_UP: Final = """
import fcntl, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
print("up", flush=True)
sys.stdin.read()
"""
_ASK: Final = """
import json, socket, ssl, sys
from http.client import HTTPConnection
asked = json.load(sys.stdin)
try:
    connection = HTTPConnection(asked["name"], asked["port"])
    connection.sock = socket.create_connection(("127.0.0.1", asked["port"]), 20)
    if asked["authority"] is not None:
        context = ssl.create_default_context(cadata=asked["authority"] or None)
        if not asked["authority"]:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if asked["pair"]:
            context.load_cert_chain(asked["pair"])
        connection.sock = context.wrap_socket(connection.sock, server_hostname=asked["name"])
    body = None if asked["body"] is None else json.dumps(asked["body"])
    method = "GET" if body is None else "POST"
    connection.request(method, asked["path"], body, asked["headers"])
    answer = connection.getresponse()
    json.dump([answer.status, answer.read().decode()], sys.stdout)
except OSError as error:
    json.dump([0, str(error)], sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request; status 0: no answer, and the text is the reason."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The TLS options of a client: the authority that it trusts, and its certificate.

    ``authority`` None is plain HTTP, "" verifies nothing; ``pair`` is a file, with the key.
    """

    authority: str | None = None
    pair: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """A network namespace; ``inside`` returns the command that runs another one there."""

    holder: int

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", "--", *command]

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None, stdin: str = ""
    ) -> str:
        """Run a command, which must succeed, and return its output."""
        done = subprocess.run(
            self.inside(*command), env=environment, input=stdin, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def request(
        self,
        port: int,
        path: str,
        body: object = None,
        client: ClientTls = ClientTls(),
        name: str = "localhost",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request to a port under a host name; with a body it is a POST."""
        asked = {
            "port": port,
            "path": path,
            "body": body,
            "name": name,
            "headers": headers or {},
            **asdict(client),
        }
        output = self.run(sys.executable, "-I", "-c", _ASK, stdin=json.dumps(asked))
        return Answer(*json.loads(output))


@contextmanager
def network() -> Iterator[Network]:
    """Create a network until the block ends; fail if namespaces cannot be created."""
    possible = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, check=False
    )
    assert os.geteuid() == 0, "namespaces cannot be created without root"
    assert possible.returncode == 0, possible.stderr.decode()
    command = ["unshare", "--net", "--", sys.executable, "-I", "-c", _UP]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"up\n"
        try:
            yield Network(holder.pid)
        finally:
            holder.stdin.close()
