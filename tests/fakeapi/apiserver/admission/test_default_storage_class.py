"""DefaultStorageClass admission."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.fakeapi.api_requests import DEFAULT, Ask

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = f"{DEFAULT}/persistentvolumeclaims"
BETA = "storageclass.beta.kubernetes.io/is-default-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


async def create_classes(ask: Ask, clock: VirtualClock, *classes: tuple[str, str, str]) -> None:
    """Create one class a second."""
    for name, annotation, value in classes:
        metadata = {"name": name, "annotations": {annotation: value}}
        ask("POST", CLASSES, {"metadata": metadata, "provisioner": "example.com/disk"})
        await clock.advance(1)


def class_of_new_claim(ask: Ask, metadata: dict[str, Any], **spec: Any) -> str | None:
    spec |= {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "c", **metadata}, "spec": spec}
    status, claim = ask("POST", CLAIMS, body)
    assert status == 201, claim
    found: str | None = claim["spec"].get("storageClassName")
    return found


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ((("a", DEFAULT_CLASS, "false"),), None),
        ((("a", DEFAULT_CLASS, "true"),), "a"),
        ((("a", BETA, "true"), ("b", DEFAULT_CLASS, "false")), "a"),
        ((("b", DEFAULT_CLASS, "true"), ("c", DEFAULT_CLASS, "true")), "c"),
    ],
    ids=["no default", "one", "the beta annotation", "the newest of several"],
)
async def test_a_claim_without_a_class_gets_the_default(
    ask: Ask, clock: VirtualClock, classes: tuple[tuple[str, str, str], ...], chosen: str | None
) -> None:
    await create_classes(ask, clock, *classes)
    assert class_of_new_claim(ask, {}) == chosen


@pytest.mark.parametrize(
    ("metadata", "spec", "kept"),
    [
        ({}, {"storageClassName": ""}, ""),
        ({}, {"storageClassName": "own"}, "own"),
        ({"annotations": {"volume.beta.kubernetes.io/storage-class": "own"}}, {}, None),
    ],
    ids=["none wanted", "a class", "a class by annotation"],
)
async def test_a_claim_that_names_a_class_keeps_it(
    ask: Ask,
    clock: VirtualClock,
    metadata: dict[str, Any],
    spec: dict[str, str],
    kept: str | None,
) -> None:
    await create_classes(ask, clock, ("a", DEFAULT_CLASS, "true"))
    assert class_of_new_claim(ask, metadata, **spec) == kept
