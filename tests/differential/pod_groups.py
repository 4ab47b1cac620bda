"""Groups of running pods, which are preempted one by one or as a whole.

The members of a group have one priority, though not always that of the group: upstream's order of
the victims of a group is a map's, and the first victim's own priority counts.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.builders import Document, manifest

_MEMBER_PRIORITIES: Final = {"gang-1": 10, "gang-2": 50}
_SHARE: Final = 0.3


def pod_groups(draw: Random, namespaces: tuple[str, ...]) -> list[Document]:
    """Return the groups of each namespace; a group has a priority of its own."""
    return [
        manifest(
            "PodGroup",
            name,
            namespace=namespace,
            metadata={"uid": f"group-{namespace}-{name}"},
            spec={
                "schedulingPolicy": {"gang": {"minCount": draw.randint(1, 4)}},
                "disruptionMode": draw.choice(({"single": {}}, {"all": {}}, {"all": {}})),
                "priority": draw.choice((0, 10, 50, 100)),
            },
        )
        for namespace in namespaces
        for name in _MEMBER_PRIORITIES
    ]


def member(draw: Random, pod: Document) -> Document:
    """Return a started pod as a member of a group, or mostly the pod as it is."""
    if draw.random() >= _SHARE or "startTime" not in pod["status"]:
        return pod
    name, priority = draw.choice(tuple(_MEMBER_PRIORITIES.items()))
    group = {"schedulingGroup": {"podGroupName": name}}
    return {**pod, "spec": {**pod["spec"], "priority": priority, **group}}
