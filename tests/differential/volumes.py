"""Claims that are bound or wait, volumes to bind, capacities, and what nodes can attach."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.builders import Document, manifest, owner

DRIVER: Final = "csi.example.com"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_CLAIMS: Final = ("alone", "zonal", "first", "second", "third")
_WAITING: Final = ("static-1", "static-2", "dynamic-1", "dynamic-2")
_SHARE: Final = 0.12
_WAITING_SHARE: Final = 0.2


def storage(draw: Random, nodes: Sequence[str]) -> list[Document]:
    """Return the claims of both namespaces with their volumes, the driver, and its CSINodes.

    ``alone`` is for one pod at a time, ``zonal`` has a volume that only one zone reaches.
    """
    runner: list[Document] = [_driver(draw), *_classes(draw), *_unbound(draw, nodes)]
    runner += [_csi_node(name, draw.choice((None, 1, 2, 4))) for name in nodes]
    for namespace in ("red", "blue"):
        for name in _CLAIMS:
            zone = draw.choice("ab") if name == "zonal" else None
            mode = "ReadWriteOncePod" if name == "alone" else "ReadWriteMany"
            runner += [_claim(namespace, name, mode), _volume(namespace, name, mode, zone)]
    return runner


def mounted(draw: Random, pod: Document) -> Document:
    """Return a pod that mounts a claim or two, or seldom anything; only new pods' may wait."""
    names: list[str] = []
    if draw.random() < _SHARE:
        names += draw.sample(_CLAIMS, draw.choice((1, 1, 2)))
    if "nodeName" not in pod["spec"] and draw.random() < _WAITING_SHARE:
        names += draw.sample(_WAITING, draw.choice((1, 1, 2)))
    if not names:
        return pod
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


def _driver(draw: Random) -> Document:
    spec = {"attachRequired": True, "storageCapacity": draw.random() < 0.5}
    return manifest("CSIDriver", DRIVER, metadata={"uid": "driver"}, spec=spec)


def _classes(draw: Random) -> list[Document]:
    """Return the classes of bound claims, of new volumes, and of those made by hand."""
    zones = {"key": "zone", "values": draw.sample("abc", draw.choice((1, 2)))}
    allowed = [{"matchLabelExpressions": [zones]}] if draw.random() < 0.5 else None
    provisioners: dict[str, tuple[str, Document]] = {
        "fast": (DRIVER, {}),
        "dynamic": (DRIVER, {"allowedTopologies": allowed} if allowed else {}),
        "static": ("kubernetes.io/no-provisioner", {}),
    }
    return [
        manifest(
            "StorageClass",
            name,
            metadata={"uid": f"class-{name}"},
            provisioner=provisioner,
            volumeBindingMode="WaitForFirstConsumer",
            **fields,
        )
        for name, (provisioner, fields) in provisioners.items()
    ]


def _unbound(draw: Random, nodes: Sequence[str]) -> list[Document]:
    """Return the waiting claims, volumes of all sizes on some nodes, and capacities of zones.

    The sizes of the volumes differ, since kube-scheduler chooses at random among equal ones.
    """
    found: list[Document] = []
    for namespace in ("red", "blue"):
        for name in _WAITING:
            claim = _claim(namespace, name, "ReadWriteOnce")
            kind, size = name.split("-")[0], draw.choice(("1Gi", "2Gi", "3Gi"))
            metadata = {**claim["metadata"], "annotations": {}}
            if draw.random() < 0.06:
                # A node that is gone: with another, nothing changes when the scheduler selects it
                # again, so that nothing would provision the volume.
                metadata["annotations"] = {SELECTED_NODE: "gone"}
            spec = {**claim["spec"], "storageClassName": kind}
            spec["resources"] = {"requests": {"storage": size}}
            del spec["volumeName"]
            status = {"phase": "Pending"}
            found.append({**claim, "metadata": metadata, "spec": spec, "status": status})
    for number in range(draw.randint(0, 4)):
        volume = _volume("local", str(number), "ReadWriteOnce", draw.choice(("a", "b", None)))
        spec = {**volume["spec"], "storageClassName": draw.choice(("static", "static", "dynamic"))}
        spec["capacity"] = {"storage": f"{1024 * draw.randint(1, 3) + number}Mi"}
        del spec["claimRef"]
        if draw.random() < 0.15:
            name = draw.choice(_WAITING)
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "red", "name": name}
        if draw.random() < 0.5:
            host = {
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": [draw.choice(nodes)],
            }
            terms = [{"matchExpressions": [host]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        phase = draw.choice(("Available", "Available", "Available", "Released"))
        found.append({**volume, "spec": spec, "status": {"phase": phase}})
    return [*found, *(_capacity(draw, zone) for zone in draw.sample("abc", draw.randint(0, 2)))]


def _capacity(draw: Random, zone: str) -> Document:
    size = draw.choice(("1Gi", "2Gi", "3Gi"))
    largest = {"maximumVolumeSize": "1Gi"} if draw.random() < 0.3 else {}
    return manifest(
        "CSIStorageCapacity",
        f"zone-{zone}",
        namespace="red",
        metadata={"uid": f"capacity-{zone}"},
        storageClassName="dynamic",
        nodeTopology={"matchLabels": {"zone": zone}},
        capacity=size,
        **largest,
    )


def bound(claim: Document, volume: str) -> Document:
    """Return a claim bound to a volume."""
    meta = claim["metadata"]
    annotations = {**(meta.get("annotations") or {}), "pv.kubernetes.io/bind-completed": "yes"}
    return {
        **claim,
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {**meta, "annotations": annotations},
        "spec": {**claim["spec"], "volumeName": volume},
        "status": {"phase": "Bound"},
    }


def provisioned(claim: Document) -> Document:
    """Return a new volume for a claim."""
    meta = claim["metadata"]
    volume = _volume(meta["namespace"], meta["name"], "ReadWriteOnce", None)
    return {**volume, "spec": {**volume["spec"], "storageClassName": "dynamic"}}
