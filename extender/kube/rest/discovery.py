"""Discovery: the groups, versions and resources that an API server serves.

Every group is requested in its preferred version. If a group does not answer, only that group
fails: the others are returned, together with the failure (an aggregated API server that is down
must not affect the others).

Source: client-go's discovery (ServerPreferredResources, ErrGroupDiscoveryFailed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.resources import ObjectPath, Resource


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource with its kind, verbs and subresources."""

    resource: Resource
    kind: str
    verbs: frozenset[str]
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """``apiVersion`` as in the resource's objects."""
        of = self.resource
        return f"{of.group}/{of.version}" if of.group else of.version


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The resources, in the server's order, and the failures by group and version."""

    resources: Sequence[ServedResource]
    failures: Mapping[str, str] = field(default_factory=dict)

    def deletable(self) -> Sequence[ServedResource]:
        """Return the resources that can be listed, watched and deleted."""
        verbs = {"delete", "list", "watch"}
        return [each for each in self.resources if verbs <= each.verbs]

    def of_kind(self, api_version: str, kind: str) -> ServedResource | None:
        """Return the resource of a kind: in that version, else in the group's preferred one."""
        group = api_version.rpartition("/")[0]
        found = [r for r in self.resources if (r.kind, r.resource.group) == (kind, group)]
        exact = [each for each in found if each.api_version == api_version]
        return next(iter(exact or found), None)


class _CoreVersions(msgspec.Struct):
    versions: list[str] = []


class _GroupVersion(msgspec.Struct):
    groupVersion: str


class _Group(msgspec.Struct):
    preferredVersion: _GroupVersion


class _NamedGroup(msgspec.Struct):
    versions: list[_GroupVersion] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _APIResource(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] = []


class _APIResourceList(msgspec.Struct):
    resources: list[_APIResource] = []


async def discover(client: Client) -> DiscoveryResult:
    """Discover all groups; raise ApiError, MalformedError, TransportError if none can be listed."""
    core = await _get_document(client, "/api", _CoreVersions)
    named = await _get_document(client, "/apis", _Groups)
    roots = {version: f"/api/{version}" for version in core.versions[:1]}
    for group in named.groups:
        roots[group.preferredVersion.groupVersion] = f"/apis/{group.preferredVersion.groupVersion}"
    resources: list[ServedResource] = []
    failures: dict[str, str] = {}
    for group_version, root in roots.items():
        try:
            listed = await _get_document(client, root, _APIResourceList)
        except (ApiError, MalformedError) as error:
            failures[group_version] = str(error)
        else:
            resources += _served_resources(group_version, listed.resources)
    return DiscoveryResult(resources, failures)


async def resource_of_kind(client: Client, api_version: str, kind: str) -> Resource | None:
    """Return the resource of a kind in one version of its group; None if the version lacks it.

    Raise ApiError (404 if there is no such version), MalformedError, TransportError.
    """
    root = "/apis" if "/" in api_version else "/api"
    listed = await _get_document(client, f"{root}/{api_version}", _APIResourceList)
    served = _served_resources(api_version, listed.resources)
    return next((each.resource for each in served if each.kind == kind), None)


async def discover_group(client: Client, group: str) -> Sequence[ServedResource]:
    """Discover one group: each kind in the first version that has it, in the server's order.

    Return nothing for a group that is not served. Raise ApiError, MalformedError, TransportError.
    """
    found: dict[str, ServedResource] = {}
    for group_version, root in await _roots(client, group):
        listed = await _get_document(client, root, _APIResourceList)
        for served in _served_resources(group_version, listed.resources):
            found.setdefault(served.kind, served)
    return tuple(found.values())


async def _roots(client: Client, group: str) -> Sequence[tuple[str, str]]:
    """Return a group's versions, the preferred one first, and the path of each."""
    if not group:
        core = await _get_document(client, "/api", _CoreVersions)
        return [(version, f"/api/{version}") for version in core.versions]
    try:
        named = await _get_document(client, f"/apis/{group}", _NamedGroup)
    except ApiError as error:
        if error.status == 404:
            return ()
        raise
    return [(each.groupVersion, f"/apis/{each.groupVersion}") for each in named.versions]


S = TypeVar("S", bound=msgspec.Struct)


async def _get_document(client: Client, path: str, shape: type[S]) -> S:
    try:
        return await client.get(ObjectPath(path), lambda raw: msgspec.json.decode(raw, type=shape))
    except msgspec.DecodeError as error:
        raise MalformedError(f"GET {path}: not a discovery document: {error}") from error


def _served_resources(group_version: str, listed: Sequence[_APIResource]) -> list[ServedResource]:
    group, _, version = group_version.rpartition("/")
    below: dict[str, set[str]] = {}
    for each in listed:
        parent, _, name = each.name.partition("/")
        below.setdefault(parent, set()).update({name} - {""})
    return [
        ServedResource(
            Resource(group, version, each.name, each.namespaced),
            each.kind,
            frozenset(each.verbs),
            frozenset(below[each.name]),
        )
        for each in listed
        if "/" not in each.name
    ]
