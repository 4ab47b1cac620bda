"""fakeapi as a cluster's API server: TLS, RBAC, a network of its own; and kubectl and helm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.builders import Document
from tests.commands import COMMAND
from tests.deploy.network import Network
from tests.e2e.clients import programs

PORT: Final = 6443
SYSTEM: Final = "kube-system"

_FAKEAPI: Final = (*COMMAND, "fakeapi")
_LISTENING: Final = "listening on "


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server at 127.0.0.1:6443 of ``network``, and an administrator with ``home``."""

    network: Network
    home: Path
    kubeconfig: Path
    release: str = "1.37"

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl, which has to succeed, and give what it printed."""
        program = str(programs(self.release)["kubectl"])
        return self.network.run(program, *arguments, environment=self._environment, stdin=stdin)

    def helm(self, *arguments: str) -> str:
        """Run helm, which has to succeed, and give what it printed."""
        program = str(programs(self.release)["helm"])
        return self.network.run(program, *arguments, environment=self._environment)

    def get(self, kind: str, name: str, namespace: str = SYSTEM) -> Document:
        """Read an object."""
        told = self.kubectl("get", kind, name, "--namespace", namespace, "-o", "json")
        document: Document = json.loads(told)
        return document

    def apply(self, documents: Sequence[Mapping[str, Any]], *flags: str) -> str:
        """Apply objects; what the server does not know of is an error."""
        text = yaml.safe_dump_all(documents)
        return self.kubectl("apply", "--validate=strict", *flags, "-f", "-", stdin=text)

    @property
    def authority(self) -> str:
        """The certificate of the server's authority, in base64."""
        written = json.loads(self.kubeconfig.read_text())
        return str(written["clusters"][0]["cluster"]["certificate-authority-data"])

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.home / ".cache"),
        }


@contextmanager
def cluster(
    network: Network, home: Path, objects: Sequence[Mapping[str, Any]], release: str = "1.37"
) -> Iterator[Cluster]:
    """Run an API server that begins with ``objects`` until the block ends."""
    home.mkdir(exist_ok=True)
    kubeconfig, loaded = home / "kubeconfig", home / "objects.yaml"
    loaded.write_text(yaml.safe_dump_all(objects))
    flags = [
        "--port",
        str(PORT),
        "--tls",
        "--rbac",
        "--load",
        str(loaded),
        "--run",
        "gc,namespaces",
    ]
    command = network.inside(*_FAKEAPI, *flags, "--kubeconfig-out", str(kubeconfig))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(_LISTENING), line
            yield Cluster(network, home, kubeconfig, release)
        finally:
            process.terminate()
