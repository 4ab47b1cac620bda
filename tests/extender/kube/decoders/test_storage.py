"""Storage objects and device claims: fields absent, null and set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.kube.decoders import storage
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.csi_migration import AWS_EBS, BETA_ZONE, REGION, ZONE
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from policies.kubernetes.storage import (
    ClaimReference,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    CsiVolume,
    Disk,
    Migration,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.builders import Document, encoded

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
CLASS = "volume.beta.kubernetes.io/storage-class"
NOW = "2026-01-01T00:00:00Z"
HERE = {"nodeSelectorTerms": [{"matchFields": [
    {"key": "metadata.name", "operator": "In", "values": ["n"]}
]}]}  # fmt: skip
ZONED = {"nodeSelectorTerms": [{"matchExpressions": [
    {"key": ZONE, "operator": "In", "values": ["a"]}
]}]}  # fmt: skip


def meta(name: str = "x", **fields: Any) -> Document:
    return {"metadata": {"name": name, **fields}}


def term(key: str, value: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, "In", (value,)),)),))


def allowed(*values: str) -> Document:
    return {"key": ZONE, "values": list(values)}


CLAIMS: list[tuple[Document, PersistentVolumeClaim]] = [
    (meta(), PersistentVolumeClaim("default", "x")),
    (
        {
            **meta(annotations=None, ownerReferences=None, deletionTimestamp=None),
            "spec": {"accessModes": None, "storageClassName": None, "volumeName": None},
            "status": {"phase": None},
        },
        PersistentVolumeClaim("default", "x"),
    ),
    (
        {
            **meta(namespace="ns", annotations=BOUND),
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
                "storageClassName": "fast",
                "volumeName": "pv",
            },
            "status": {"phase": "Bound"},
        },
        PersistentVolumeClaim(
            "ns",
            "x",
            "pv",
            "fast",
            bound=True,
            access_modes=frozenset({"ReadWriteOnce", "ReadWriteOncePod"}),
        ),
    ),
    (
        {
            **meta(uid="u", annotations={"volume.kubernetes.io/selected-node": "node-1"}),
            "spec": {
                "resources": {"requests": {"storage": "1.5Ki"}},
                "selector": {"matchLabels": {"tier": "fast"}},
                "volumeAttributesClassName": "gold",
                "volumeMode": "Block",
            },
        },
        PersistentVolumeClaim(
            "default",
            "x",
            uid="u",
            request=1536,
            volume_mode="Block",
            attributes_class="gold",
            selector=LabelSelector((Requirement("tier", "In", ("fast",)),)),
            selected_node="node-1",
        ),
    ),
    (
        {
            **meta(),
            "spec": {
                "resources": {"requests": None},
                "selector": None,
                "volumeAttributesClassName": None,
                "volumeMode": None,
            },
        },
        PersistentVolumeClaim("default", "x"),
    ),
    (
        {**meta(annotations={CLASS: "old"}), "spec": {"storageClassName": "new"}},
        PersistentVolumeClaim("default", "x", storage_class="old"),
    ),
    (
        {**meta(deletionTimestamp=NOW), "status": {"phase": "Lost"}},
        PersistentVolumeClaim("default", "x", lost=True, deleting=True),
    ),
    (
        meta(ownerReferences=[{"uid": "a"}, {"uid": "b", "controller": True}]),
        PersistentVolumeClaim("default", "x", owner="b"),
    ),
]

EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
VOLUMES: list[tuple[Document, PersistentVolume]] = [
    (meta(), PersistentVolume("x")),
    ({**meta(labels=None), "spec": {"csi": None, "nodeAffinity": None}}, PersistentVolume("x")),
    ({**meta(), "spec": {"nodeAffinity": {"required": None}}}, PersistentVolume("x")),
    (
        {
            **meta(),
            "spec": {
                "csi": {"driver": "d", "volumeHandle": "h"},
                "nodeAffinity": {"required": ZONED},
            },
        },
        PersistentVolume("x", term(ZONE, "a"), csi=CsiVolume("d", "h")),
    ),
    (
        meta(labels={REGION: "r", BETA_ZONE: "a__ b", ZONE: "a__", "other": "x"}),
        PersistentVolume(
            "x",
            topology=((BETA_ZONE, frozenset({"a", "b"})), (REGION, frozenset({"r"}))),
            labels={REGION: "r", BETA_ZONE: "a__ b", ZONE: "a__", "other": "x"},
        ),
    ),
    (
        {**meta(), "spec": {**EBS, "nodeAffinity": {"required": ZONED}}},
        PersistentVolume(
            "x",
            term(ZONE, "a"),
            migration=Migration(
                Disk(AWS_EBS, "vol-1"),
                CsiVolume("ebs.csi.aws.com", "vol-1"),
                term("topology.ebs.csi.aws.com/zone", "a"),
            ),
        ),
    ),
    ({**meta(), "spec": {"iscsi": {"iqn": "i"}}}, PersistentVolume("x")),
    (
        {
            **meta(labels={"tier": "fast"}, deletionTimestamp=NOW),
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Ki"},
                "claimRef": {"namespace": "ns", "name": "data", "uid": "u"},
                "storageClassName": "local",
                "volumeAttributesClassName": "gold",
                "volumeMode": "Block",
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume(
            "x",
            available=True,
            deleting=True,
            claim=ClaimReference("ns", "data", "u"),
            storage_class="local",
            capacity=1024,
            access_modes=frozenset({"ReadWriteOnce"}),
            volume_mode="Block",
            attributes_class="gold",
            labels={"tier": "fast"},
        ),
    ),
    (
        {
            **meta(annotations={CLASS: "old"}),
            "spec": {"storageClassName": "new", "capacity": None, "claimRef": None},
            "status": {"phase": "Bound"},
        },
        PersistentVolume("x", storage_class="old"),
    ),
]

CLASSES: list[tuple[Document, StorageClass]] = [
    (meta(), StorageClass("x")),
    ({**meta(), "provisioner": "p", "volumeBindingMode": None}, StorageClass("x", "p")),
    ({**meta(), "provisioner": "p", "volumeBindingMode": "Immediate"}, StorageClass("x", "p")),
    (
        {**meta(), "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"},
        StorageClass("x", "p", waits_for_first_consumer=True),
    ),
    ({**meta(), "allowedTopologies": None}, StorageClass("x")),
    ({**meta(), "allowedTopologies": []}, StorageClass("x")),
    (
        {**meta(), "allowedTopologies": [{"matchLabelExpressions": [allowed("a")]}]},
        StorageClass("x", topologies=term(ZONE, "a")),
    ),
    (
        {
            **meta(),
            "allowedTopologies": [{}, {"matchLabelExpressions": [allowed("a", "not a label")]}],
        },
        StorageClass("x", topologies=NodeSelector((NodeSelectorTerm(), NodeSelectorTerm()))),
    ),
]

CSI_NODES: list[tuple[Document, CsiNode]] = [
    (meta(), CsiNode("x")),
    ({**meta(annotations=None), "spec": {"drivers": None}}, CsiNode("x")),
    (
        {
            **meta(annotations={"storage.alpha.kubernetes.io/migrated-plugins": "p,q"}),
            "spec": {
                "drivers": [
                    {"name": "a", "allocatable": {"count": 5}},
                    {"name": "b", "allocatable": {"count": None}},
                    {"name": "c", "allocatable": None},
                ]
            },
        },
        CsiNode("x", frozenset("abc"), {"a": 5}, frozenset("pq")),
    ),
]

DRIVERS: list[tuple[Document, CsiDriver]] = [
    (meta(), CsiDriver("x")),
    ({**meta(), "spec": {"preventPodSchedulingIfMissing": None}}, CsiDriver("x")),
    ({**meta(), "spec": {"preventPodSchedulingIfMissing": True}}, CsiDriver("x", required=True)),
    ({**meta(), "spec": {"storageCapacity": True}}, CsiDriver("x", storage_capacity=True)),
]

CAPACITIES: list[tuple[Document, CsiStorageCapacity]] = [
    (
        {**meta(), "storageClassName": "s", "capacity": None, "nodeTopology": None},
        CsiStorageCapacity("default", "x", "s"),
    ),
    (
        {
            **meta(namespace="kube-system"),
            "storageClassName": "s",
            "capacity": "1Ki",
            "nodeTopology": {"matchLabels": {ZONE: "a"}},
        },
        CsiStorageCapacity(
            "kube-system", "x", "s", LabelSelector((Requirement(ZONE, "In", ("a",)),)), 1024
        ),
    ),
    (
        {
            **meta(),
            "storageClassName": "s",
            "capacity": "2Ki",
            "maximumVolumeSize": "1Ki",
            "nodeTopology": {},
        },
        CsiStorageCapacity("default", "x", "s", LabelSelector(), 1024),
    ),
]

ATTACHMENTS: list[tuple[Document, VolumeAttachment]] = [
    (meta(), VolumeAttachment("x", "", "", "")),
    (
        {
            **meta(),
            "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
        },
        VolumeAttachment("x", "n", "d", "pv"),
    ),
    (
        {**meta(), "spec": {"attacher": "d", "nodeName": "n", "source": {"inlineVolumeSpec": {}}}},
        VolumeAttachment("x", "n", "d", ""),
    ),
]

TABLES: list[tuple[Callable[[bytes], object], list[Any]]] = [
    (storage.decode_claim, CLAIMS),
    (storage.decode_volume, VOLUMES),
    (storage.decode_storage_class, CLASSES),
    (storage.decode_csi_node, CSI_NODES),
    (storage.decode_csi_driver, DRIVERS),
    (storage.decode_storage_capacity, CAPACITIES),
    (storage.decode_volume_attachment, ATTACHMENTS),
]


@pytest.mark.parametrize(
    ("decode", "document", "expected"), [(decode, *row) for decode, rows in TABLES for row in rows]
)
def test_the_fields_that_filters_read_are_decoded(
    decode: Callable[[bytes], object], document: Document, expected: object
) -> None:
    assert decode(encoded(document)) == expected


@pytest.mark.parametrize(
    ("decode", "document", "problem"),
    [
        (
            storage.decode_claim,
            {**meta(namespace="ns"), "spec": {"accessModes": "all"}},
            "PersistentVolumeClaim ns/x: spec.accessModes: expected array | null, got str",
        ),
        (
            storage.decode_volume,
            {
                **meta(),
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "Near"}]}
                ]}}},
            },
            "PersistentVolume x: spec.nodeAffinity.required: 'Near' is not a valid node selector",
        ),
        (
            storage.decode_storage_capacity,
            {**meta(namespace="ns"), "storageClassName": "s", "maximumVolumeSize": "much"},
            "CSIStorageCapacity ns/x: maximumVolumeSize: 'much' is not a quantity",
        ),
        (storage.decode_csi_node, {"metadata": {}}, "CSINode: metadata.name: required"),
    ],
)  # fmt: skip
def test_an_invalid_object_is_reported_with_the_field(
    decode: Callable[[bytes], object], document: Document, problem: str
) -> None:
    with pytest.raises(ObjectError) as caught:
        decode(encoded(document))
    assert str(caught.value).startswith(problem)
