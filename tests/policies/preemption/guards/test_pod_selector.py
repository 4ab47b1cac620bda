"""Selectors of pods: every field has to match, and an empty one matches every pod."""

from __future__ import annotations

import pytest

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.selectors import parse_label_selector
from policies.preemption.guards.pod_selector import PodSelector
from tests.builders import pod

PODS = {
    "web": pod(
        "web-1",
        labels={"app": "web", "pod-template-hash": "5d"},
        owner=PodOwner("ReplicaSet", "web-5d"),
        priority_class="high",
    ),
    "job": pod("job-1", namespace="batch", owner=PodOwner("Job", "job"), priority_class="low"),
    "bare": pod("bare", namespace="batch"),
    "replica": pod("r-1", owner=PodOwner("ReplicaSet", "r")),
}


def words(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (PodSelector(), "web job bare replica"),
        (PodSelector(namespaces=words("batch")), "job bare"),
        (PodSelector(namespaces=words("batch", "default")), "web job bare replica"),
        (PodSelector(labels=parse_label_selector("app=web")), "web"),
        (PodSelector(labels=parse_label_selector("!app")), "job bare replica"),
        (PodSelector(priority_classes=words("high", "low")), "web job"),
        (PodSelector(owners=words("Deployment")), "web"),
        (PodSelector(owners=words("ReplicaSet")), "replica"),
        (PodSelector(owners=words("Job", "Pod")), "job bare"),
        (PodSelector(namespaces=words("batch"), owners=words("Pod")), "bare"),
        (PodSelector(namespaces=words("default"), owners=words("Job")), ""),
    ],
)
def test_pods_are_selected(selector: PodSelector, selected: str) -> None:
    found = [name for name, each in PODS.items() if selector.matches(each)]
    assert found == selected.split()
