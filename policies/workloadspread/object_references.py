"""References between objects: from a WorkloadSpread to its target, from an object to its owners.

A kind is identified by its group, regardless of its version; so versions are never compared.

Sources: openkruise/kruise pkg/util/workloadspread/workloadspread.go (VerifyGroupKind), and
ParseGroupVersion in k8s.io/apimachinery/pkg/runtime/schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

APPS: Final = "apps"
KRUISE: Final = "apps.kruise.io"

CLONE_SET: Final = "CloneSet"
DEPLOYMENT: Final = "Deployment"
JOB: Final = "Job"
REPLICA_SET: Final = "ReplicaSet"
REPLICATION_CONTROLLER: Final = "ReplicationController"
STATEFUL_SET: Final = "StatefulSet"

TARGET_KINDS: Final[Mapping[str, frozenset[str]]] = {
    DEPLOYMENT: frozenset((APPS,)),
    CLONE_SET: frozenset((KRUISE,)),
    REPLICA_SET: frozenset((APPS,)),
    JOB: frozenset(("batch",)),
    STATEFUL_SET: frozenset((APPS, KRUISE)),
}
"""The groups of the kinds that any WorkloadSpread can target."""

NATIVE_KINDS: Final[Mapping[str, frozenset[str]]] = {
    **TARGET_KINDS,
    REPLICATION_CONTROLLER: frozenset(("",)),
}
"""The groups of the kinds whose fields are known."""


class ApiVersionError(ValueError):
    """A text is not a valid ``apiVersion``; the message is upstream's."""


class ObjectKey(NamedTuple):
    """The key of an object in its namespace."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class WorkloadReference:
    """A reference to an object of the same namespace; ``uid`` is "" if it has none."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    @property
    def group(self) -> str:
        """The API group; "" for the core group. Raises ApiVersionError."""
        return parse_group_version(self.api_version)[0]

    @property
    def identity(self) -> ObjectKey:
        """The object's key, regardless of the version. Raises ApiVersionError."""
        return ObjectKey(self.group, self.kind, self.name)

    @property
    def lenient_identity(self) -> ObjectKey:
        """The object's key; an invalid ``apiVersion`` counts as the core group."""
        try:
            return self.identity
        except ApiVersionError:
            return ObjectKey("", self.kind, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parse_group_version(api_version: str) -> tuple[str, str]:
    """Split ``apps/v1``; the core group is "". Raise ApiVersionError."""
    if api_version in ("", "/"):
        return "", ""
    group, slash, version = api_version.rpartition("/")
    if "/" in group:
        raise ApiVersionError(f"unexpected GroupVersion string: {api_version}")
    return (group, version) if slash else ("", api_version)
