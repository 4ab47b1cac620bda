"""The roles and bindings that kube-apiserver creates when it starts.

:mod:`fakeapi.apiserver.auth.generate_bootstrap_policy` generates the file. The rules of aggregated
roles are empty; :mod:`fakeapi.apiserver.registry.cluster_role_aggregation` fills them in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

FILE: Final = Path(__file__).with_name("data") / "bootstrap_policy.json.xz"

_CLIENT_ROLES: Final = frozenset(
    ("cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer")
)

Document = dict[str, Any]


def read_bootstrap_policy() -> list[Document]:
    """Return the roles and bindings."""
    import lzma  # imported on use: start-up time

    objects: list[Document] = orjson.loads(lzma.decompress(FILE.read_bytes()))
    return objects


def client_roles() -> list[Document]:
    """Return the roles that every client relies on, with their bindings.

    They are for administrators, discovery, the health endpoints and self reviews of access.
    """
    return [each for each in read_bootstrap_policy() if each["metadata"]["name"] in _CLIENT_ROLES]
