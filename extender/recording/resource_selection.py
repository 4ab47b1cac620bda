"""Selection of the resources of a recording by their names.

The default is the resources that scheduling and its controllers read, as far as the server has
them. The definition of a custom resource is recorded with it, since a replay needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, Selection
from extender.kube.rest.discovery import DiscoveryResult, ServedResource, discover
from extender.kube.rest.resources import ObjectPath, Resource
from extender.recording.format import Document, RecordedResource

DEFAULT: Final = (
    "namespaces",
    "nodes",
    "priorityclasses.scheduling.k8s.io",
    "podgroups.scheduling.k8s.io",
    "compositepodgroups.scheduling.k8s.io",
    "storageclasses.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "persistentvolumes",
    "persistentvolumeclaims",
    "deviceclasses.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "resourceclaims.resource.k8s.io",
    "poddisruptionbudgets.policy",
    "resourcequotas",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "jobs.batch",
    "workloadspreads.apps.kruise.io",
    "pods",
)
ALL: Final = "all"

EXCLUDED_FROM_ALL: Final = frozenset(
    ("events", "events.events.k8s.io", "leases.coordination.k8s.io")
)
"""Left out of ``all``: more numerous than all other objects, and read by one guard only."""
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)


class ResourceNameError(ValueError):
    """The server does not have a resource of this name."""


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """A resource to record, the selection of its objects, and its entry in the header."""

    resource: Resource
    selection: Selection
    recorded: RecordedResource


@dataclass(frozen=True, slots=True)
class RecordingPlan:
    """The resources to record, and the release of their server.

    ``follows_definitions``: custom resources that are defined later are recorded as well.
    """

    server: str
    namespace: str
    sources: tuple[RecordedSource, ...]
    follows_definitions: bool = False


class _ServerVersion(msgspec.Struct):
    gitVersion: str = ""  # noqa: N815 - the key as Kubernetes writes it


async def make_plan(client: Client, names: Sequence[str], namespace: str) -> RecordingPlan:
    """Return the plan to record the resources ``names`` of a server (empty: the default).

    Raise ResourceNameError, ApiError, MalformedError, TransportError.
    """
    release = await client.get(
        ObjectPath("/version"), lambda raw: msgspec.json.decode(raw, type=_ServerVersion)
    )
    served = select_resources(await discover(client), names)
    recorded = tuple(_recorded_source(each, namespace) for each in served)
    if ALL in names:
        return RecordingPlan(release.gitVersion, namespace, recorded, follows_definitions=True)
    definitions = [
        await _definition(client, each) for each in served if each.resource.group.count(".")
    ]
    sources = *(each for each in definitions if each is not None), *recorded
    return RecordingPlan(release.gitVersion, namespace, sources)


def established_source(definition: Document, namespace: str) -> RecordedSource | None:
    """Return the custom resource of a definition; None if it is not established."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    if not any((c["type"], c["status"]) == ("Established", "True") for c in conditions):
        return None
    spec = definition["spec"]
    group, names, namespaced = spec["group"], spec["names"], spec["scope"] == "Namespaced"
    served = [version for version in spec["versions"] if version["served"]]
    version = max(served, key=lambda each: each["storage"], default=None)
    if version is None:
        return None
    resource = Resource(group, version["name"], names["plural"], namespaced=namespaced)
    return _recorded_source(ServedResource(resource, names["kind"], frozenset()), namespace)


def select_resources(discovered: DiscoveryResult, names: Sequence[str]) -> Sequence[ServedResource]:
    """Return the resources of these names; if empty, the default ones that are served.

    A name is a plural, optionally with its group. Raise ResourceNameError.
    """
    recordable = [each for each in discovered.resources if {"list", "watch"} <= each.verbs]
    if ALL in names:
        return [each for each in recordable if str(each.resource) not in EXCLUDED_FROM_ALL]
    if not names:
        return [each for name in DEFAULT for each in recordable if str(each.resource) == name]
    return [_find_named(recordable, name) for name in dict.fromkeys(names)]


def _find_named(recordable: Iterable[ServedResource], name: str) -> ServedResource:
    found = [each for each in recordable if name in (each.resource.plural, str(each.resource))]
    if not found:
        raise ResourceNameError(
            f"no resource {name!r} can be listed and watched there; expected a plural such as "
            f"pods, with its group if need be: replicasets.apps"
        )
    return found[0]


def _recorded_source(served: ServedResource, namespace: str) -> RecordedSource:
    resource = served.resource
    within = Selection(namespace if resource.namespaced else "")
    recorded = RecordedResource(
        str(resource), served.api_version, served.kind, namespaced=resource.namespaced
    )
    return RecordedSource(resource, within, recorded)


async def _definition(client: Client, served: ServedResource) -> RecordedSource | None:
    """Return the definition of a custom resource; None if there is none or it is forbidden."""
    name = str(served.resource)
    try:
        await client.get(DEFINITIONS.object(name), bytes)
    except ApiError:
        return None
    recorded = RecordedResource(
        str(DEFINITIONS), "apiextensions.k8s.io/v1", "CustomResourceDefinition", only=name
    )
    return RecordedSource(DEFINITIONS, Selection(field_selector=f"metadata.name={name}"), recorded)
