"""The initial objects of a cluster, and calls of the extender about them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from extender.secure_serving.self_signed import CertificateAuthority, KeyPair
from tests.builders import Document, manifest, node_json, pod_json

HOST: Final = "reprieve.kube-system.svc"
PAGE_HOST: Final = "reprieve-page.kube-system.svc"
SECRET: Final = "reprieve-tls"
SYSTEM: Final = "kube-system"
DEFINITIONS: Final = Path(__file__).with_name("definitions.yaml")


def definitions() -> list[Document]:
    """Return the definitions of custom resources that our objects use."""
    return list(yaml.safe_load_all(DEFINITIONS.read_text()))


def full(scheduler: str = "default-scheduler") -> list[Document]:
    """Return two nodes that are full of pods of low priority, and a pending pod."""
    spec = {"schedulerName": scheduler}
    return [
        manifest("Namespace", "default"),
        node_json("node-1", cpu="2"),
        node_json("node-2", cpu="2"),
        pod_json("low", on="node-1", cpu="2", priority=1),
        pod_json("lower", on="node-2", cpu="2", priority=0),
        pod_json("high", cpu="2", priority=100, spec=spec),
    ]


def filtered() -> Document:
    """Return a filter call for both nodes."""
    return {"Pod": full()[-1], "Nodes": None, "NodeNames": ["node-1", "node-2"]}


def preempted() -> Document:
    """Return a preempt call that offers both nodes."""
    offered = {
        node: {"Pods": [{"UID": pod}], "NumPDBViolations": 0}
        for node, pod in (("node-1", "low"), ("node-2", "lower"))
    }
    return {"Pod": full()[-1], "NodeNameToVictims": None, "NodeNameToMetaVictims": offered}


def secret(authority: CertificateAuthority, hosts: Sequence[str] = (HOST, PAGE_HOST)) -> Document:
    """Build the Secret with a server's certificate and its authority."""
    pair = authority.issue_server(hosts)
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate}
    data = {name: b64encode(content).decode() for name, content in files.items()}
    return manifest("Secret", SECRET, namespace=SYSTEM, type="kubernetes.io/tls", data=data)


def scheduler_roles() -> list[Document]:
    """Return the objects for kube-schedulers that every cluster has but fakeapi lacks.

    Only the rules that they use. Source:
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go and namespace_policy.go.
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
    lists = ("allowed-names", "extra-headers-prefix", "group-headers", "username-headers")
    data = {
        "client-ca-file": authority,
        "requestheader-client-ca-file": authority,
        **{f"requestheader-{name}": "[]" for name in lists},
    }
    name = "extension-apiserver-authentication"
    reader = {**rule(reading, [""], "configmaps"), "resourceNames": [name]}
    return [
        manifest("ClusterRole", "system:kube-scheduler", rules=scheduler),
        manifest("ClusterRole", "system:volume-scheduler", rules=volumes),
        manifest("Role", f"{name}-reader", namespace=SYSTEM, rules=[reader]),
        manifest("ConfigMap", name, namespace=SYSTEM, data=data),
    ]


def rule(verbs: Sequence[str], groups: Sequence[str], *resources: str) -> Document:
    """Return a rule of a role."""
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def written(pair: KeyPair, path: Path) -> str:
    """Write a certificate and its key into a file, and return its path."""
    path.write_bytes(pair.certificate + pair.key)
    return str(path)
