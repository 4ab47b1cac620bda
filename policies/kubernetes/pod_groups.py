"""PodGroups and CompositePodGroups of scheduling.k8s.io, as far as preemption reads them.

A pod names its PodGroup, and a PodGroup or CompositePodGroup may name the CompositePodGroup above
it, in the same namespace. Source: k8s.io/api/scheduling/v1beta1 and v1alpha3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

MAX_TREE_DEPTH: Final = 4
"""The levels of a tree of groups that are read (WorkloadMaxTreeDepth)."""


class DisruptionMode(Enum):
    """Whether the pods of a group are disrupted one by one, or only all together."""

    SINGLE = "single"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup or a CompositePodGroup.

    ``priority`` is 0 where the object has none. ``parent`` is the name of the CompositePodGroup
    above it, "" for none. ``preempts`` is false if its preemptionPolicy is Never. ``min_count`` is
    the number of pods that have to be scheduled together: that of a gang, or 1.
    """

    namespace: str
    name: str
    priority: int = 0
    mode: DisruptionMode = DisruptionMode.SINGLE
    parent: str = ""
    preempts: bool = True
    min_count: int = 1
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodGroups:
    """All PodGroups and CompositePodGroups by key.

    An object that could not be decoded is missing, and so are all objects of a kind that the API
    server does not serve or permit.
    """

    groups: Mapping[str, PodGroup] = field(default_factory=dict)
    composites: Mapping[str, PodGroup] = field(default_factory=dict)


NO_POD_GROUPS: Final = PodGroups()
