"""What a cluster begins with, and what is asked about it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from fakeapi.certificates import Authority, KeyPair
from tests.builders import node_json, pod_json

HOST: Final = "reprieve.kube-system.svc"
SECRET: Final = "reprieve-tls"  # noqa: S105 - the name of one
DEFINITIONS: Final = Path(__file__).with_name("definitions.yaml")

Document = dict[str, Any]


def definitions() -> list[Document]:
    """Give the custom resources that our objects are of."""
    return list(yaml.safe_load_all(DEFINITIONS.read_text()))


def full() -> list[Document]:
    """Give a cluster of two nodes that are full of pods of low priority, and one pod that wants in."""
    spec = {"schedulerName": "reprieve-scheduler"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        node_json("node-1", cpu="2"),
        node_json("node-2", cpu="2"),
        pod_json("low", on="node-1", cpu="2", priority=1),
        pod_json("lower", on="node-2", cpu="2", priority=0),
        pod_json("high", cpu="2", priority=100, spec=spec),
    ]


def filtered() -> Document:
    """Give a call of filter about both nodes."""
    return {"Pod": full()[-1], "Nodes": None, "NodeNames": ["node-1", "node-2"]}


def preempted() -> Document:
    """Give a call of preempt that offers both nodes."""
    offered = {
        node: {"Pods": [{"UID": pod}], "NumPDBViolations": 0}
        for node, pod in (("node-1", "low"), ("node-2", "lower"))
    }
    return {"Pod": full()[-1], "NodeNameToVictims": None, "NodeNameToMetaVictims": offered}


def secret(authority: Authority, hosts: Sequence[str] = (HOST,)) -> Document:
    """Give the Secret with a server's certificate, and with who has signed it."""
    pair = authority.issue_server(hosts)
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": "kube-system"},
        "data": {name: b64encode(content).decode() for name, content in files.items()},
    }


def written(pair: KeyPair, path: Path) -> str:
    """Write a certificate and its key into a file, and give its name."""
    path.write_bytes(pair.certificate + pair.key)
    return str(path)
