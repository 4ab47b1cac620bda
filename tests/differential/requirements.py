"""The scheduling constraints of pods, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.builders import Document

_TOPOLOGIES: Final = ("zone", "kubernetes.io/hostname")
_FEATURES: Final = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
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
    return _merged(draw, term) if draw.random() < 0.15 else term


def _merged(draw: Random, term: Document) -> Document:
    """Return a term with label keys, and the values that the API server merged from them.

    The labels of the pod may have changed since, so the values are drawn apart from them.
    """
    keys, operator = draw.choice((("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
    value = {"key": "tier", "operator": operator, "values": [draw.choice("ab")]}
    selector = term["labelSelector"]
    expressions = [*selector.get("matchExpressions", ()), value]
    return {
        **term,
        keys: ["tier"],
        "labelSelector": {**selector, "matchExpressions": expressions},
    }


def affinity(draw: Random) -> Document:
    """Return a spec's part with anti-affinity, or rarely affinity, to other pods."""
    kind = "podAffinity" if draw.random() < 0.25 else "podAntiAffinity"
    return {"affinity": {kind: {_REQUIRED: [_term(draw) for _ in range(draw.choice((1, 1, 2)))]}}}


def placement(draw: Random) -> Document:
    """Return a spec's part that says on which nodes a pod may be, and how it is to be spread."""
    spec: Document = tolerations(draw)
    if draw.random() < 0.2:
        spec["nodeSelector"] = {"disk": draw.choice(("hdd", "ssd"))}
    if draw.random() < 0.3:
        keys = draw.sample(_TOPOLOGIES, draw.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [_constraint(draw, key) for key in keys]
    return spec


def tolerations(draw: Random) -> Document:
    """Return a spec's part with tolerations, some of them numeric."""
    spec: Document = {}
    if draw.random() < 0.3:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if draw.random() < 0.15:
        spec["tolerations"] = [
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        ]
    if draw.random() < 0.2:
        operator, bound = draw.choice(("Gt", "Lt")), draw.choice(("4", "5", "6", "05", "x"))
        numeric = {"key": "age", "operator": operator, "value": bound, "effect": "NoSchedule"}
        spec["tolerations"] = [*spec.get("tolerations", ()), numeric]
    return spec


def taints(draw: Random) -> list[str]:
    """Return a node's taints, mostly none."""
    effects = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
    found = [f"gpu=yes:{draw.choice(effects)}"] if draw.random() < 0.2 else []
    if draw.random() < 0.15:
        found.append(f"age={draw.choice(('5', '05', '-1', 'old'))}:NoSchedule")
    return found


def declared_features(draw: Random) -> Document:
    """Return a node status's part with the features that the kubelet declares, if any."""
    declared = [each for each in _FEATURES if draw.random() < 0.6]
    return {"declaredFeatures": declared} if declared else {}


def required_features(draw: Random) -> Document:
    """Return a container's part that needs a declared feature, mostly nothing."""
    if draw.random() >= 0.1:
        return {}
    codes = {"operator": "In", "values": [42]}
    action = draw.choice(("Restart", "RestartAllContainers", "RestartAllContainers"))
    rules = [{"action": action, "exitCodes": codes}]
    return {"restartPolicy": "Never", "restartPolicyRules": rules}


def host_users(draw: Random) -> Document:
    """Return a spec's part that needs another declared feature, mostly nothing."""
    return {"hostNetwork": True, "hostUsers": False} if draw.random() < 0.03 else {}


def ports(draw: Random) -> Document:
    """Return a container's part with a host port, mostly nothing; some are of one address."""
    if draw.random() >= 0.15:
        return {}
    port: Document = {"hostPort": draw.choice((8080, 8081)), "protocol": "TCP"}
    port["containerPort"] = port["hostPort"]
    if draw.random() < 0.4:
        port["hostIP"] = draw.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1"))  # noqa: S104 - not bound
    if draw.random() < 0.2:
        port["protocol"] = "UDP"
    return {"ports": [port]}


def pod_resources(draw: Random) -> Document:
    """Return a spec's part with the resources of the whole pod, mostly nothing."""
    if draw.random() >= 0.1:
        return {}
    amounts = {"cpu": draw.choice(("1", "2", "3")), "memory": "2Gi"}
    chosen = draw.sample(tuple(amounts), draw.choice((1, 2)))
    return {"resources": {"requests": {name: amounts[name] for name in chosen}}}


def resized(draw: Random, containers: Sequence[Document]) -> Document:
    """Return a running pod's status with what its kubelet has allocated, mostly nothing."""
    if draw.random() >= 0.1:
        return {}
    amounts = [{"cpu": draw.choice(("250m", "1", "2", "3")), "memory": "1Gi"} for _ in range(2)]
    reported = {"allocatedResources": amounts[0], "resources": {"requests": amounts[1]}}
    status: Document = {
        "containerStatuses": [{"name": each["name"], **reported} for each in containers]
    }
    reason = draw.choice(("Deferred", "Infeasible", None))
    if draw.random() < 0.5:
        status["resize"] = draw.choice(("InProgress", "Infeasible"))
    if reason is not None:
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
        status["conditions"] = [pending]
    return status


def missing_claim(draw: Random, pod: Document) -> Document:
    """Return a pod that mounts a claim that does not exist, or mostly the pod as it is."""
    if draw.random() >= 0.03:
        return pod
    volume = {"name": "absent", "persistentVolumeClaim": {"claimName": "absent"}}
    volumes = [*pod["spec"].get("volumes", ()), volume]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


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
