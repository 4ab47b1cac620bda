"""What the server says about itself besides its version: metrics, and its issuer of tokens.

``/metrics`` has the version, the number of stored objects by kind, and the seats of priority
levels, as kube-apiserver names them.
``/.well-known/openid-configuration`` and ``/openid/v1/jwks`` describe the issuer of service account
tokens. The tokens of this server are not signed, so the set of keys is empty: a client can check
them by a TokenReview only.

Sources: k8s.io/apiserver/pkg/storage/etcd3/metrics, pkg/serviceaccount/openidmetadata.go,
pkg/routes/openidmetadata.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import orjson

from fakeapi.apiserver.discovery.version_and_health import ServerVersion
from fakeapi.apiserver.kinds import ResourceRegistry
from fakeapi.apiserver.kinds.builtin import PRIORITY_LEVELS
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.wire.http_messages import JSON, Request, Response

_KEYS_PATH: Final = "/openid/v1/jwks"
_CACHED: Final = {"Cache-Control": "public, max-age=3600"}
_SERVER_SEATS: Final = 600  # --max-requests-inflight and --max-mutating-requests-inflight
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServerInformation:
    """The version of a server, and the URL of its issuer of tokens."""

    release: ServerVersion
    issuer: str


def serve_information(
    request: Request, store: Store, kinds: ResourceRegistry, server: ServerInformation
) -> Response | None:
    """Serve metrics and the metadata of the issuer; return None for other paths."""
    match request.path:
        case "/metrics":
            text = "".join(f"{line}\n" for line in _metrics(store, kinds, server.release))
            return Response(200, text.encode(), _METRICS_TYPE)
        case "/.well-known/openid-configuration":
            body = orjson.dumps(_openid_configuration(server.issuer))
            return Response(200, body, JSON, headers=_CACHED)
        case path if path == _KEYS_PATH:
            body = orjson.dumps({"keys": []})
            return Response(200, body, "application/jwk-set+json", headers=_CACHED)
    return None


def _openid_configuration(issuer: str) -> dict[str, str | list[str]]:
    return {
        "issuer": issuer,
        "jwks_uri": f"{issuer}{_KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def _metrics(store: Store, kinds: ResourceRegistry, release: ServerVersion) -> Iterator[str]:
    version = release.document()
    labels = f'git_version="{release.name}",major="{version["major"]}",minor="{version["minor"]}"'
    yield "# HELP kubernetes_build_info The version of Kubernetes that the server reports."
    yield "# TYPE kubernetes_build_info gauge"
    yield f"kubernetes_build_info{{{labels}}} 1"
    yield "# HELP apiserver_resource_objects Number of stored objects by kind."
    yield "# TYPE apiserver_resource_objects gauge"
    stored = {kind.resource: kind for kind in kinds.all if "list" in kind.verbs}
    for kind in stored.values():
        labels = f'group="{kind.group}",resource="{kind.plural}"'
        yield f"apiserver_resource_objects{{{labels}}} {len(store.entries(kind))}"
    yield from _nominal_seats(store)


def _nominal_seats(store: Store) -> Iterator[str]:
    name, shares = "apiserver_flowcontrol_nominal_limit_seats", dict[str, int]()
    for entry in store.entries(PRIORITY_LEVELS):
        spec = entry.document().get("spec") or {}
        enabled = spec.get("limited") or spec.get("exempt") or {}
        shares[entry.key] = enabled.get("nominalConcurrencyShares") or 0
    yield f"# HELP {name} Nominal number of execution seats configured for each priority level"
    yield f"# TYPE {name} gauge"
    total = sum(shares.values()) or 1
    for level, own in shares.items():
        yield f'{name}{{priority_level="{level}"}} {ceil(_SERVER_SEATS * own / total)}'
