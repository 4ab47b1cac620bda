"""KubeSchedulerConfigurations: their meaning, and the errors of invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi import FakeCluster, VirtualCluster
from fakeapi.controlplane.scheduler.configuration import plain_extender
from fakeapi.controlplane.scheduler.configuration_loader import load_scheduler_configuration
from fakeapi.controlplane.scheduler.options import SchedulerConfigError
from policies.kubernetes.releases import NEWEST, UnknownReleaseError, release
from policies.preemption.filtering import IN_TREE
from tests.commands import ROOT

URL = "http://127.0.0.1:8888"


def test_the_default_is_one_profile_without_extenders() -> None:
    read = load_scheduler_configuration()
    assert list(read.profiles) == ["default-scheduler"]
    profile = read.profiles["default-scheduler"]
    assert (profile.rules.release, profile.rules.filters) == (NEWEST, IN_TREE)
    assert (read.extenders, read.initial_backoff_seconds, read.max_backoff_seconds) == ([], 1, 10)


def test_the_shipped_configuration_is_valid() -> None:
    text = (ROOT / "deploy" / "kube-scheduler" / "configuration.yaml").read_text()
    read = load_scheduler_configuration(text, release("1.34"))
    [extender] = read.extenders
    assert (extender.url_prefix, extender.preempt_verb, extender.filter_verb) == (
        URL, "preempt", "",
    )  # fmt: skip
    assert extender.timeout_seconds == 5
    args = read.profiles["default-scheduler"].preemption
    assert args is not None
    assert (args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute) == (0, 1)
    assert read.release.name == "1.34"


def test_a_url_is_an_extender_that_filters_and_preempts_by_name() -> None:
    [extender] = load_scheduler_configuration(extenders=[URL]).extenders
    assert extender == plain_extender(URL)
    assert (extender.filter_verb, extender.preempt_verb, extender.node_cache_capable) == (
        "filter",
        "preempt",
        True,
    )
    assert (extender.ignorable, extender.timeout_seconds, extender.managed) == (
        False, 5.0, frozenset(),
    )  # fmt: skip


@pytest.mark.parametrize("url", [URL, f"{URL}/"])
def test_a_url_in_the_file_is_configured_there(url: str) -> None:
    written = {"extenders": [{"urlPrefix": URL, "ignorable": True}]}
    [extender] = load_scheduler_configuration(written, extenders=[url]).extenders
    assert extender.ignorable


def test_disabled_filters_are_left_out() -> None:
    plugins = {
        "filter": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeName"}]},
        "score": {"disabled": [{"name": "*"}]},
        "multiPoint": {"disabled": [{"name": "DefaultPreemption"}, {"name": "ImageLocality"}]},
    }
    read = load_scheduler_configuration({"profiles": [{"plugins": plugins}]})
    profile = read.profiles["default-scheduler"]
    assert [each.name for each in profile.rules.filters] == ["NodeName"]
    assert profile.preemption is None


GPU = {"name": "example.com/gpu"}
NO_CANDIDATES = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}

WRONG: dict[str, tuple[Any, str]] = {
    "not YAML": ("a: [", "not YAML: "),
    "another kind": ({"kind": "Pod"}, "kind: expected KubeSchedulerConfiguration, got 'Pod'"),
    "an old version": (
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
        "apiVersion: expected kubescheduler.config.k8s.io/v1, got",
    ),
    "a misspelt field": (
        {"extenders": [{"urlPrefix": URL, "filterverb": "filter"}]},
        "extenders[0]: object contains unknown field filterverb",
    ),
    "no profiles": ({"profiles": []}, "profiles: expected at least one"),
    "one name for two": (
        {"profiles": [{}, {"schedulerName": "default-scheduler"}]},
        "profiles[0].schedulerName: expected one that no other profile has",
    ),
    "no name": ({"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName: required"),
    "no URL": ({"extenders": [{"urlPrefix": ""}]}, "extenders[0].urlPrefix: required"),
    "no weight": (
        {"extenders": [{"urlPrefix": URL, "prioritizeVerb": "p"}]},
        "extenders[0].weight: must have a positive weight applied to it",
    ),
    "two that bind": (
        {"extenders": [{"urlPrefix": URL, "bindVerb": "b"}] * 2},
        "extenders: found 2 extenders implementing bind",
    ),
    "a native resource": (
        {"extenders": [{"urlPrefix": URL, "managedResources": [{"name": "cpu"}]}]},
        "extenders[0].managedResources: 'cpu' is an invalid extended resource name",
    ),
    "a resource twice": (
        {"extenders": [{"urlPrefix": URL, "managedResources": [GPU, GPU]}]},
        "extenders[0].managedResources: duplicate extender managed resource name example.com/gpu",
    ),
    "no duration": (
        {"extenders": [{"urlPrefix": URL, "httpTimeout": "5"}]},
        "extenders[0].httpTimeout: time: missing unit in duration",
    ),
    "a negative duration": (
        {"extenders": [{"urlPrefix": URL, "httpTimeout": "-5s"}]},
        "extenders[0].httpTimeout: expected a time that is not negative",
    ),
    "no candidates": (
        {"profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": NO_CANDIDATES}]}]},
        "profiles[0].pluginConfig: minCandidateNodesPercentage and minCandidateNodesAbsolute are",
    ),
    "an out-of-tree plugin": (
        {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}]},
        "profiles[0].plugins.filter.enabled: 'Mine' cannot be played here",
    ),
    "backoff": (
        {"podInitialBackoffSeconds": 20},
        "podMaxBackoffSeconds: expected at least podInitialBackoffSeconds",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_reported_in_one_line(name: str) -> None:
    document, problem = WRONG[name]
    with pytest.raises(SchedulerConfigError) as caught:
        load_scheduler_configuration(document)
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


def test_clusters_reject_invalid_configurations() -> None:
    with pytest.raises(SchedulerConfigError):
        VirtualCluster(run="scheduler", scheduler={"profiles": []})
    with pytest.raises(UnknownReleaseError):
        FakeCluster(run="scheduler", upstream="1.12")
