"""Upstream's tables of the ReplicaSet controller, and its decoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from extender.controllers.replicaset.types import (
    OwnedPod,
    ReplicaSet,
    decode_pod,
    decode_replica_set,
)
from tests.builders import Document, encoded
from tests.builders.replicas import VECTORS

Case = Mapping[str, Any]


def cases(table: str) -> pytest.MarkDecorator:
    """Run a test for each case of a table."""
    found = VECTORS[table]
    return pytest.mark.parametrize(
        "case", found, ids=[case.get("name", str(number)) for number, case in enumerate(found)]
    )


def owned_pod(document: Document) -> OwnedPod:
    return decode_pod(encoded(document))


def decoded_set(document: Document) -> ReplicaSet:
    return decode_replica_set(encoded(document))
