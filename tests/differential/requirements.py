"""The scheduling constraints of pods, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.builders import Document

_TOPOLOGIES: Final = ("zone", "kubernetes.io/hostname")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def labels(draw: Random) -> dict[str, str]:
    """Return a pod's labels; some have none."""
    chosen = {"app": draw.choice(("web", "db", "job"))} if draw.random() < 0.9 else {}
    return chosen | ({"tier": draw.choice("ab")} if draw.random() < 0.5 else {})


def expression(draw: Random) -> Document:
    """Return a requirement on labels."""
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    valued = operator in ("In", "NotIn")
    values = {"values": draw.sample(("web", "db", "job"), draw.randint(1, 2))} if valued else {}
    return {"key": "app", "operator": operator, **values}


def _selector(draw: Random) -> Document:
    if draw.random() < 0.25:
        return {"matchExpressions": [expression(draw)]}
    return {"matchLabels": {"app": draw.choice(("web", "db", "job"))}}


def _term(draw: Random) -> Document:
    term: Document = {"labelSelector": _selector(draw), "topologyKey": draw.choice(_TOPOLOGIES)}
    chance = draw.random()
    if chance < 0.15:
        term["namespaces"] = ["red", "blue"]
    elif chance < 0.25:
        term["namespaceSelector"] = draw.choice(({}, {"matchLabels": {"team": "red"}}))
    return term


def affinity(draw: Random) -> Document:
    """Return a spec's part with anti-affinity, or rarely affinity, to other pods."""
    kind = "podAffinity" if draw.random() < 0.25 else "podAntiAffinity"
    return {"affinity": {kind: {_REQUIRED: [_term(draw) for _ in range(draw.choice((1, 1, 2)))]}}}


def placement(draw: Random) -> Document:
    """Return a spec's part that says on which nodes a pod may be, and how it is to be spread."""
    spec: Document = {}
    if draw.random() < 0.2:
        spec["nodeSelector"] = {"disk": draw.choice(("hdd", "ssd"))}
    if draw.random() < 0.3:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if draw.random() < 0.15:
        spec["tolerations"] = [
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        ]
    if draw.random() < 0.3:
        keys = draw.sample(_TOPOLOGIES, draw.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [_constraint(draw, key) for key in keys]
    return spec


def _constraint(draw: Random, key: str) -> Document:
    constraint: Document = {
        "maxSkew": draw.choice((1, 1, 2)),
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway" if draw.random() < 0.1 else "DoNotSchedule",
        "labelSelector": _selector(draw),
    }
    hard = constraint["whenUnsatisfiable"] == "DoNotSchedule"
    if hard and draw.random() < 0.2:
        constraint["minDomains"] = draw.randint(1, 4)
    if draw.random() < 0.15:
        constraint["nodeTaintsPolicy"] = "Honor"
    if draw.random() < 0.15:
        constraint["nodeAffinityPolicy"] = "Ignore"
    if draw.random() < 0.15:
        constraint["matchLabelKeys"] = ["tier"]
    return constraint
