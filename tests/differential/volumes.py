"""Claims that are bound already, the volumes behind them, and what nodes can attach."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.builders import Document, manifest, owner

DRIVER: Final = "csi.example.com"
_CLAIMS: Final = ("alone", "zonal", "first", "second", "third")
_SHARE: Final = 0.12


def storage(draw: Random, nodes: Sequence[str]) -> list[Document]:
    """Return the claims of both namespaces with their volumes, the driver, and its CSINodes.

    ``alone`` is for one pod at a time, ``zonal`` has a volume that only one zone reaches.
    """
    runner: list[Document] = [_driver(), _class()]
    runner += [_csi_node(name, draw.choice((None, 1, 2, 4))) for name in nodes]
    for namespace in ("red", "blue"):
        for name in _CLAIMS:
            zone = draw.choice("ab") if name == "zonal" else None
            mode = "ReadWriteOncePod" if name == "alone" else "ReadWriteMany"
            runner += [_claim(namespace, name, mode), _volume(namespace, name, mode, zone)]
    return runner


def mounted(draw: Random, pod: Document) -> Document:
    """Return a pod that mounts a claim or two, or seldom anything."""
    if draw.random() >= _SHARE:
        return pod
    names = draw.sample(_CLAIMS, draw.choice((1, 1, 2)))
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**pod, "spec": {**pod["spec"], "volumes": claims}}


def _claim(namespace: str, name: str, mode: str) -> Document:
    return manifest(
        "PersistentVolumeClaim",
        name,
        namespace=namespace,
        metadata={
            "uid": f"claim-{namespace}-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        spec={
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeName": f"{namespace}-{name}",
            "volumeMode": "Filesystem",
        },
        status={"phase": "Bound"},
    )


def _volume(namespace: str, name: str, mode: str, zone: str | None) -> Document:
    claim = owner(name, "PersistentVolumeClaim", uid=f"claim-{namespace}-{name}")
    spec: Document = {
        "accessModes": [mode],
        "capacity": {"storage": "1Gi"},
        "claimRef": {**claim, "namespace": namespace},
        "csi": {"driver": DRIVER, "volumeHandle": f"{namespace}-{name}"},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
    }
    if zone is not None:
        within = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [within]}]}}
    uid = f"volume-{namespace}-{name}"
    status = {"phase": "Bound"}
    return manifest(
        "PersistentVolume", f"{namespace}-{name}", metadata={"uid": uid}, spec=spec, status=status
    )


def _csi_node(name: str, count: int | None) -> Document:
    limits = {} if count is None else {"allocatable": {"count": count}}
    drivers = [{"name": DRIVER, "nodeID": name, "topologyKeys": [], **limits}]
    return manifest("CSINode", name, metadata={"uid": f"csi-{name}"}, spec={"drivers": drivers})


def _driver() -> Document:
    return manifest("CSIDriver", DRIVER, metadata={"uid": "driver"}, spec={"attachRequired": True})


def _class() -> Document:
    return manifest(
        "StorageClass",
        "fast",
        metadata={"uid": "class"},
        provisioner=DRIVER,
        volumeBindingMode="WaitForFirstConsumer",
    )
