"""Kinds of documents that are sent to subresources and never stored."""

from __future__ import annotations

from functools import partial
from typing import Final

from fakeapi.kinds.kind import ResourceInfo
from fakeapi.kinds.schemas import struct_of


def _request(group: str, kind: str, definition: str) -> ResourceInfo:
    plural = f"{kind.lower()}s"
    return ResourceInfo(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        definition=definition,
        structure=partial(struct_of, definition),
    )


EVICTION: Final = _request("policy", "Eviction", "io.k8s.api.policy.v1.Eviction")
SCALE: Final = _request("autoscaling", "Scale", "io.k8s.api.autoscaling.v1.Scale")
TOKEN_REQUEST: Final = _request(
    "authentication.k8s.io", "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest"
)
