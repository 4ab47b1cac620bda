"""Objects that kube-scheduler does not read, and some policies do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

RESOURCE_QUOTA: Final = "ResourceQuota"


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """A ResourceQuota: what the pods of its namespace may request together.

    ``hard`` maps resources to amounts, CPU in milliCPU. It is empty for a quota with scopes, which
    counts some pods of the namespace only.
    """

    namespace: str
    name: str
    hard: Mapping[str, int]

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PolicyObjects:
    """These objects in a snapshot; a kind is present only if a policy reads it.

    ``quotas`` are the ResourceQuotas by namespace.
    """

    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)


NO_POLICY_OBJECTS: Final = PolicyObjects()
