"""Discovery: which groups, versions and resources there are, in the plain (not aggregated) form.

Also ``/version`` and the health endpoints. The version is that of the release whose rules the
server follows; kubectl and others choose their behaviour by it.

Source: k8s.io/apimachinery/pkg/apis/meta/v1 (APIVersions, APIGroupList, APIResourceList) and
pkg/version.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fakeapi.api.messages import TEXT, Response
from fakeapi.kinds import Kind, Kinds
from fakeapi.kinds.kind import SUBRESOURCE_VERBS, VERBS

_VERSION: Final = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_HEALTH: Final = ("/healthz", "/livez", "/readyz")


def discover(kinds: Kinds, path: str) -> Response | None:
    """Answer a GET of a discovery, version or health path; None if it is none of them."""
    path = path.rstrip("/")
    if path in _HEALTH:
        return Response(200, b"ok", TEXT)
    if path == "/version":
        return _answer(_VERSION)
    match path.split("/"):
        case ["", "api"]:
            return _answer({"kind": "APIVersions", "versions": ["v1"], **_ADDRESSES})
        case ["", "apis"]:
            groups = dict.fromkeys(group for group, _ in kinds.group_versions if group)
            return _answer(_groups(kinds, list(groups)))
        case ["", "api", version]:
            return _resources(kinds, "", version)
        case ["", "apis", group]:
            return _group(kinds, group)
        case ["", "apis", group, version]:
            return _resources(kinds, group, version)
    return None


_ADDRESSES: Final = {
    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
}


def _answer(document: dict[str, Any]) -> Response:
    return Response(200, orjson.dumps(document) + b"\n")


def _groups(kinds: Kinds, groups: list[str]) -> dict[str, Any]:
    described = [_describe_group(kinds, group) for group in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": described}


def _group(kinds: Kinds, group: str) -> Response | None:
    if not any(group == known for known, _ in kinds.group_versions if known):
        return None
    return _answer({"kind": "APIGroup", "apiVersion": "v1", **_describe_group(kinds, group)})


def _describe_group(kinds: Kinds, group: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for known, version in kinds.group_versions
        if known == group
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(kinds: Kinds, group: str, version: str) -> Response | None:
    found = kinds.in_group_version(group, version)
    if not found:
        return None
    return _answer(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": found[0].api_version,
            "resources": [entry for kind in found for entry in _describe_kind(kind)],
        }
    )


def _describe_kind(kind: Kind) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(VERBS),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    below = [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(SUBRESOURCE_VERBS),
        }
        for name in kind.subresources
    ]
    return [main, *below]
