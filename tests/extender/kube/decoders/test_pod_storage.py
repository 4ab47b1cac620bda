"""Pods: the volumes and device claims that filters read."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.storage import ClaimVolume, DeviceClaim, Disk, PodStorage
from tests.builders import Document, encoded, pod_json


def storage_of(document: Document) -> PodStorage | None:
    return decode_pod(encoded(document), NEWEST).storage


def with_volumes(*volumes: Any) -> PodStorage | None:
    return storage_of(pod_json(spec={"volumes": list(volumes)}))


PD, EBS, AZURE = "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk"
URI = "/subscriptions/x/disks/d"

VOLUMES = [
    ({"emptyDir": {}}, None),
    ({"configMap": {"name": "x"}}, None),
    ({"hostPath": {"path": "/"}}, None),
    ({"persistentVolumeClaim": {"claimName": "x"}}, ClaimVolume("x")),
    ({"persistentVolumeClaim": {"claimName": "x", "readOnly": True}}, ClaimVolume("x")),
    ({"ephemeral": {"volumeClaimTemplate": {}}}, ClaimVolume("pod-v", ephemeral=True)),
    ({"gcePersistentDisk": {"pdName": "d"}}, Disk(PD, "d")),
    ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, Disk(PD, "d", read_only=True)),
    ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, Disk(EBS, "vol-1")),
    ({"azureDisk": {"diskName": "d", "diskURI": URI}}, Disk(AZURE, URI, name="d")),
    ({"azureDisk": {"diskURI": URI, "kind": "Managed"}}, Disk(AZURE, URI)),
    ({"azureDisk": {"diskURI": URI, "kind": "Shared"}}, Disk(AZURE, "")),
    ({"cinder": {"volumeID": "c"}}, Disk("kubernetes.io/cinder", "c")),
    ({"portworxVolume": {"volumeID": "p"}}, Disk("kubernetes.io/portworx-volume", "p")),
    ({"iscsi": {"iqn": "iqn.2001", "lun": 1}}, Disk("kubernetes.io/iscsi", "iqn.2001")),
    (
        {"rbd": {"image": "i", "monitors": ["a", "b"]}},
        Disk("kubernetes.io/rbd", "rbd/i", monitors=frozenset({"a", "b"})),
    ),
    ({"rbd": {"image": "i", "pool": "p"}}, Disk("kubernetes.io/rbd", "p/i")),
]


@pytest.mark.parametrize(("source", "read"), VOLUMES, ids=lambda it: str(it)[:40])
def test_volumes_that_filters_read_are_decoded(
    source: Document, read: ClaimVolume | Disk | None
) -> None:
    found = with_volumes({"name": "v", **source})
    assert found == (None if read is None else PodStorage((read,)))


def test_volumes_keep_their_order() -> None:
    claims = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in ("b", "a")]
    found = with_volumes(*claims, {"name": "v", "emptyDir": {}})
    assert found == PodStorage((ClaimVolume("b"), ClaimVolume("a")))


MADE = [{"name": "made", "resourceClaimName": "gpu-x"}, {"name": "needless"}]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ({"resourceClaimName": "gpu"}, [DeviceClaim("it", "gpu")]),
        ({"resourceClaimTemplateName": "t"}, [DeviceClaim("it", None, templated=True)]),
        ({}, [DeviceClaim("it", None)]),
        (
            {"name": "made", "resourceClaimTemplateName": "t"},
            [DeviceClaim("made", "gpu-x", templated=True)],
        ),
        ({"name": "needless", "resourceClaimTemplateName": "t"}, []),
    ],
)
def test_device_claims_are_decoded(source: Document, read: list[DeviceClaim]) -> None:
    document = pod_json(
        spec={"resourceClaims": [{"name": "it", **source}]}, status={"resourceClaimStatuses": MADE}
    )
    assert storage_of(document) == (PodStorage((), tuple(read)) if read else None)
