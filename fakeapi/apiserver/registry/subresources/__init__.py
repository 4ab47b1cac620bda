"""Subresources with handlers of their own.

The table has the handler of each method. Subresources that are fields of the object (status,
approval, ephemeral containers, ...) use the handlers of the object; the strategies in
:mod:`fakeapi.apiserver.registry.strategy` define the fields that an update through them can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakeapi.apiserver.registry.request_scope import Handler
from fakeapi.apiserver.registry.subresources.binding import bind, bind_named_in_body
from fakeapi.apiserver.registry.subresources.custom_scale import (
    get_custom_scale,
    write_custom_scale,
)
from fakeapi.apiserver.registry.subresources.eviction import evict
from fakeapi.apiserver.registry.subresources.pod_log import get_log
from fakeapi.apiserver.registry.subresources.scale import get_scale, write_scale
from fakeapi.apiserver.registry.subresources.token import request_token

_SCALE: Final[Mapping[str, Handler]] = {"GET": get_scale, "PUT": write_scale, "PATCH": write_scale}

SUBRESOURCES: Final[Mapping[tuple[str, str], Mapping[str, Handler]]] = {
    ("bindings", ""): {"POST": bind_named_in_body},
    ("deployments.apps", "scale"): _SCALE,
    ("pods", "binding"): {"POST": bind},
    ("pods", "eviction"): {"POST": evict},
    ("pods", "log"): {"GET": get_log},
    ("replicasets.apps", "scale"): _SCALE,
    ("replicationcontrollers", "scale"): _SCALE,
    ("serviceaccounts", "token"): {"POST": request_token},
    ("statefulsets.apps", "scale"): _SCALE,
}

CUSTOM_SUBRESOURCES: Final[Mapping[str, Mapping[str, Handler]]] = {
    "scale": {"GET": get_custom_scale, "PUT": write_custom_scale, "PATCH": write_custom_scale}
}
"""The subresources of custom resources that have handlers of their own."""

__all__ = ["CUSTOM_SUBRESOURCES", "SUBRESOURCES"]
