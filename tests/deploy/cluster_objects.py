"""The objects that a cluster begins with, and queries about it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from extender.secure_serving.self_signed import CertificateAuthority, KeyPair
from tests.builders import Document, node_json, pod_json

HOST: Final = "reprieve.kube-system.svc"
SECRET: Final = "reprieve-tls"
DEFINITIONS: Final = Path(__file__).with_name("definitions.yaml")


def definitions() -> list[Document]:
    """Return the custom resources that our objects are of."""
    return list(yaml.safe_load_all(DEFINITIONS.read_text()))


def full(scheduler: str = "default-scheduler") -> list[Document]:
    """Return two nodes that are full of pods of low priority, and a pod that wants in."""
    spec = {"schedulerName": scheduler}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        node_json("node-1", cpu="2"),
        node_json("node-2", cpu="2"),
        pod_json("low", on="node-1", cpu="2", priority=1),
        pod_json("lower", on="node-2", cpu="2", priority=0),
        pod_json("high", cpu="2", priority=100, spec=spec),
    ]


def filtered() -> Document:
    """Return a call of filter about both nodes."""
    return {"Pod": full()[-1], "Nodes": None, "NodeNames": ["node-1", "node-2"]}


def preempted() -> Document:
    """Return a call of preempt that offers both nodes."""
    offered = {
        node: {"Pods": [{"UID": pod}], "NumPDBViolations": 0}
        for node, pod in (("node-1", "low"), ("node-2", "lower"))
    }
    return {"Pod": full()[-1], "NodeNameToVictims": None, "NodeNameToMetaVictims": offered}


def secret(authority: CertificateAuthority, hosts: Sequence[str] = (HOST,)) -> Document:
    """Return the Secret with a server's certificate, and with who has signed it."""
    pair = authority.issue_server(hosts)
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": "kube-system"},
        "data": {name: b64encode(content).decode() for name, content in files.items()},
    }


def scheduler_roles() -> list[Document]:
    """Return the objects that every cluster has for kube-schedulers, and fakeapi has not.

    Of the rules, those that they make use of.

    Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go and namespace_policy.go.
    """
    reading = ["get", "list", "watch"]
    scheduler = [
        rule(["create", "patch", "update"], ["", "events.k8s.io"], "events"),
        rule(["create"], ["coordination.k8s.io"], "leases"),
        rule(["get", "list", "watch", "delete"], [""], "pods"),
        rule(["create"], [""], "bindings", "pods/binding"),
        rule(["patch", "update"], [""], "pods/status"),
        rule(reading, [""], "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"),
        rule(reading, [""], "replicationcontrollers", "services"),
        rule(reading, ["apps"], "replicasets", "statefulsets"),
        rule(reading, ["policy"], "poddisruptionbudgets"),
        rule(reading, ["resource.k8s.io"], "deviceclasses", "devicetaintrules"),
        rule(reading, ["resource.k8s.io"], "resourceclaims", "resourceslices"),
        rule(reading, ["storage.k8s.io"], "csidrivers", "csinodes", "csistoragecapacities"),
        rule(reading, ["scheduling.k8s.io"], "podgroups", "workloads"),
        rule(["create"], ["authentication.k8s.io"], "tokenreviews"),
        rule(["create"], ["authorization.k8s.io"], "subjectaccessreviews"),
    ]
    volumes = [
        rule([*reading, "patch", "update"], [""], "persistentvolumes", "persistentvolumeclaims"),
        rule(reading, ["storage.k8s.io"], "storageclasses", "volumeattachments"),
    ]
    authority = CertificateAuthority().certificate.decode()
    named = {"allowed-names": "[]", "client-ca-file": authority, "extra-headers-prefix": "[]"}
    headers = {"group-headers": "[]", "username-headers": "[]", **named}
    reader = {
        **rule(reading, [""], "configmaps"),
        "resourceNames": ["extension-apiserver-authentication"],
    }
    return [
        role("ClusterRole", "system:kube-scheduler", scheduler),
        role("ClusterRole", "system:volume-scheduler", volumes),
        role("Role", "extension-apiserver-authentication-reader", [reader]),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
            "data": {
                "client-ca-file": authority,
                **{f"requestheader-{name}": text for name, text in headers.items()},
            },
        },
    ]


def rule(verbs: Sequence[str], groups: Sequence[str], *resources: str) -> Document:
    """Return a rule of a role."""
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def role(kind: str, name: str, rules: Sequence[Document]) -> Document:
    """Return a role; those of a namespace are in kube-system."""
    place = {} if kind == "ClusterRole" else {"namespace": "kube-system"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **place},
        "rules": list(rules),
    }


def written(pair: KeyPair, path: Path) -> str:
    """Write a certificate and its key into a file, and give its name."""
    path.write_bytes(pair.certificate + pair.key)
    return str(path)
