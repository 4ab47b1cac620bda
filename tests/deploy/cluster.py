"""fakeapi as a cluster's API server with TLS, RBAC and a network; kubectl and helm."""

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
        """Run kubectl, which must succeed, and return its output."""
        program = str(programs(self.release)["kubectl"])
        return self.network.run(program, *arguments, environment=self._environment, stdin=stdin)

    def helm(self, *arguments: str) -> str:
        """Run helm, which must succeed, and return its output."""
        program = str(programs(self.release)["helm"])
        return self.network.run(program, *arguments, environment=self._environment)

    def get(self, kind: str, name: str, namespace: str = SYSTEM) -> Document:
        """Read an object."""
        output = self.kubectl("get", kind, name, "--namespace", namespace, "-o", "json")
        document: Document = json.loads(output)
        return document

    def apply(self, documents: Sequence[Mapping[str, Any]], *flags: str) -> str:
        """Apply objects; an unknown field is an error."""
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
    """Run an API server with ``objects`` until the block ends."""
    home.mkdir(exist_ok=True)
    kubeconfig, loaded = home / "kubeconfig", home / "objects.yaml"
    loaded.write_text(yaml.safe_dump_all(objects))
    flags = f"--port {PORT} --tls --rbac --run gc,namespaces".split()
    paths = ("--load", str(loaded), "--kubeconfig-out", str(kubeconfig))
    command = network.inside(*_FAKEAPI, *flags, *paths)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(_LISTENING), line
            yield Cluster(network, home, kubeconfig, release)
        finally:
            process.terminate()
