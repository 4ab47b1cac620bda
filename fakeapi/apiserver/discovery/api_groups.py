"""Discovery: the groups, versions and resources that the server serves.

There are two forms: plain documents, one for each group and version, and aggregated ones, which
describe everything below ``/api`` or ``/apis`` to clients that request them:

    application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList

Both are served in JSON and protobuf; the ETag is that of the JSON, as upstream.

``/``, ``/version`` and the health endpoints are served here, too. Documents are built once for each
set of kinds.

Sources: k8s.io/apimachinery/pkg/apis/meta/v1 (APIVersions, APIGroupList, APIResourceList),
k8s.io/api/apidiscovery, k8s.io/apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from fakeapi.apiserver.discovery.version_and_health import CHECKS, ServerVersion, serve_health
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.resource_info import Subresource
from fakeapi.apiserver.wire.errors import not_acceptable
from fakeapi.apiserver.wire.http_messages import (
    PROTOBUF,
    Request,
    Response,
    conditional_response,
    etag_of,
)
from fakeapi.apiserver.wire.negotiation import OFFERED, is_pretty, matching_clauses
from fakeapi.apiserver.wire.protobuf_encoder import encode_protobuf

_GROUP: Final = "apidiscovery.k8s.io"
_LIST: Final = "APIGroupDiscoveryList"
_VERSIONS: Final = ("v2", "v2beta1")
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?", re.ASCII)
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}

_ADDRESSES: Final = {
    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
}

Document = dict[str, Any]


@dataclass(frozen=True)
class CachedDocument:
    """An encoded document and its ETag."""

    body: bytes
    etag: str

    @cached_property
    def protobuf(self) -> bytes:
        """Return the document in protobuf."""
        return encode_protobuf(self.body) or b""


class Discovery:
    """Serves the discovery, version and health paths."""

    def __init__(self, kinds: ResourceRegistry, release: ServerVersion) -> None:
        self.kinds = kinds
        self._groups = group_versions(kinds)
        self._version = release.document()
        self._documents: dict[str, CachedDocument] = {}

    def answer(self, request: Request) -> Response | None:
        """Serve a GET of a discovery, version or health path; return None for other paths.

        Raise StatusError (404, 406).
        """
        match request.path.rstrip("/").split("/"):
            case [""]:
                return self._json(request, self._paths)
            case ["", "version"]:
                return self._json(request, lambda: self._version)
            case ["", "api"]:
                versions = {"kind": "APIVersions", "versions": list(self._groups.get("", []))}
                return self._aggregated(request) or self._plain(
                    request, lambda: {**versions, **_ADDRESSES}
                )
            case ["", "apis"]:
                return self._aggregated(request) or self._plain(request, self._group_list)
            case ["", "apis", group] if group in self._groups and group:
                header = {"kind": "APIGroup", "apiVersion": "v1"}
                return self._plain(request, lambda: {**header, **self._group(group)})
            case ["", "api", version]:
                return self._resources(request, "", version)
            case ["", "apis", group, version]:
                return self._resources(request, group, version)
        return serve_health(request)

    def _plain(self, request: Request, make: Callable[[], Document]) -> Response:
        if _requested_form(request).media_type != PROTOBUF:
            return self._json(request, make)
        stored = self._store(request.path.rstrip("/"), make)
        return Response(200, stored.protobuf, PROTOBUF)

    def _json(self, request: Request, make: Callable[[], Document]) -> Response:
        _requested_form(request)  # raises 406
        stored = self._store(request.path.rstrip("/"), make)
        if is_pretty(request):
            document = orjson.loads(stored.body)
            return Response(200, orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return Response(200, stored.body)

    def _aggregated(self, request: Request) -> Response | None:
        form = _requested_form(request)
        version = form.version
        if version is None:
            return None
        groups = [group for group in self._groups if bool(group) is ("apis" in request.path)]
        stored = self._store(
            f"{request.path.rstrip('/')} {version}", lambda: self._aggregated_list(groups, version)
        )
        content_type = f"{form.media_type};g={_GROUP};v={version};as={_LIST}"
        body = stored.protobuf if form.media_type == PROTOBUF else stored.body
        return conditional_response(request, body, content_type, stored.etag)

    def _store(self, name: str, make: Callable[[], Document]) -> CachedDocument:
        if name not in self._documents:
            body = orjson.dumps(make()) + b"\n"
            self._documents[name] = CachedDocument(body, etag_of(body))
        return self._documents[name]

    def _paths(self) -> Document:
        paths = ["/api", "/apis", "/metrics", "/version", "/openapi/v3"]
        paths += ["/.well-known/openid-configuration", "/openid/v1/jwks"]
        for group, versions in self._groups.items():
            root = f"/apis/{group}" if group else "/api"
            paths += [root, *(f"{root}/{version}" for version in versions)]
        for health, checks in CHECKS.items():
            paths += [f"/{health}", *(f"/{health}/{check}" for check in checks)]
        return {"paths": sorted(set(paths))}

    def _group_list(self) -> Document:
        groups = [self._group(group) for group in self._groups if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, group: str) -> Document:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._groups[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, request: Request, group: str, version: str) -> Response | None:
        if version not in self._groups.get(group, ()):
            return None
        return self._plain(request, lambda: self._resource_list(group, version))

    def _resource_list(self, group: str, version: str) -> Document:
        found = _sorted(self.kinds.in_group_version(group, version))
        version_of_lists = {"apiVersion": "v1"} if group else {}
        return {
            "kind": "APIResourceList",
            **version_of_lists,
            "groupVersion": found[0].api_version,
            "resources": [
                entry for kind in found for entry in _plain_entries(kind, self._preferred(kind))
            ],
        }

    def _preferred(self, kind: ResourceInfo) -> str:
        """Return the preferred one of the versions that serve a kind."""
        served = (v for v in self._groups[kind.group] if self.kinds.at(kind.group, v, kind.plural))
        return next(served, kind.version)

    def _aggregated_list(self, groups: Sequence[str], version: str) -> Document:
        return {
            "kind": _LIST,
            "apiVersion": f"{_GROUP}/{version}",
            "metadata": {},
            "items": [self._aggregated_group(group) for group in groups],
        }

    def _aggregated_group(self, group: str) -> Document:
        versions = []
        for version in self._groups[group]:
            kinds = _sorted(self.kinds.in_group_version(group, version))
            resources = [_aggregated_entry(kind) for kind in kinds]
            entry = {"version": version, "resources": resources, "freshness": "Current"}
            versions.append(entry)
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def group_versions(kinds: ResourceRegistry) -> dict[str, list[str]]:
    """Return the versions of each group, preferred first: stable before beta, v2 before v1."""
    groups: dict[str, list[str]] = {}
    for group, version in kinds.group_versions:
        groups.setdefault(group, []).append(version)
    return {group: sorted(found, key=version_rank, reverse=True) for group, found in groups.items()}


def version_rank(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version: stable after beta, v2 after v1, other names first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    return (_STAGES[match[2]], int(match[1]), int(match[3] or 0))


@dataclass(frozen=True, slots=True)
class DiscoveryForm:
    """A form of discovery; ``version`` is that of the aggregated form, None for the plain one."""

    media_type: str
    version: str | None = None


def _requested_form(request: Request) -> DiscoveryForm:
    """Return the form that a request asks for; raise StatusError (406) if it accepts none."""
    whole = request.path.strip("/") in ("api", "apis")
    for clause, media_type in matching_clauses(request.accept, OFFERED):
        group, version, kind = clause.group_version_kind()
        if not (group or version or kind):
            return DiscoveryForm(media_type)
        if whole and (group, kind) == (_GROUP, _LIST) and version in _VERSIONS:
            return DiscoveryForm(media_type, version)
    raise not_acceptable(OFFERED)


def _sorted(kinds: Sequence[ResourceInfo]) -> list[ResourceInfo]:
    return sorted(kinds, key=lambda kind: kind.plural)


def _subresources(kind: ResourceInfo) -> list[Subresource]:
    return [kind.subresources[name] for name in sorted(kind.subresources)]


def _names(kind: ResourceInfo) -> Document:
    names: Document = {}
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _response_group_version(kind: ResourceInfo) -> dict[str, str]:
    """Return group and version of a custom kind; built-in kinds leave them to the document."""
    if kind.custom is None:
        return {"group": "", "version": ""}
    return {"group": kind.group, "version": kind.version}


def _verbs(kind: ResourceInfo) -> list[str]:
    if kind.custom is None:
        return sorted(kind.verbs)
    verbs = [str(verb) for verb in _CUSTOM_VERB_ORDER if verb in kind.verbs]
    if kind.custom.terminating:
        return [verb for verb in verbs if verb not in ("create", "patch", "update")]
    return verbs


_CUSTOM_VERB_ORDER: Final = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)
"""The verbs of custom resources in upstream's order."""


def _plain_entries(kind: ResourceInfo, preferred: str) -> list[Document]:
    main = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
        **_names(kind),
    }
    if {"create", "list"} <= set(kind.verbs):
        main["storageVersionHash"] = _storage_hash(kind, preferred)
    return [main, *(_plain_subresource(kind, below) for below in _subresources(kind))]


def _storage_hash(kind: ResourceInfo, preferred: str) -> str:
    """Return a hash of the stored version; clients detect a change of storage by it."""
    version = preferred if kind.custom is None else kind.custom.storage_version
    stored = f"{kind.group}/{version}/{kind.kind}"
    return b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _plain_subresource(kind: ResourceInfo, below: Subresource) -> Document:
    own = (below.group, below.version) == (kind.group, kind.version)
    return {
        "name": f"{kind.plural}/{below.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        **({} if own else {"group": below.group, "version": below.version}),
        "kind": below.kind,
        "verbs": sorted(below.verbs),
    }


def _aggregated_entry(kind: ResourceInfo) -> Document:
    entry = {
        "resource": kind.plural,
        "responseKind": {**_response_group_version(kind), "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
        **_names(kind),
    }
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, s) for s in _subresources(kind)]
    return entry


def _aggregated_subresource(kind: ResourceInfo, below: Subresource) -> Document:
    own = (below.group, below.version) == (kind.group, kind.version)
    return {
        "subresource": below.name,
        "responseKind": {
            **(
                _response_group_version(kind)
                if own
                else {"group": below.group, "version": below.version}
            ),
            "kind": below.kind,
        },
        "verbs": sorted(below.verbs),
    }
