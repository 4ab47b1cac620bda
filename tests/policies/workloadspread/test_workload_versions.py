"""References to workloads, and versions of pods."""

from __future__ import annotations

import pytest

from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.workloadspread.object_references import (
    ApiVersionError,
    ObjectKey,
    WorkloadReference,
    parse_group_version,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.workload_versions import (
    DEFAULT_VERSIONED_KINDS,
    CurrentRevisionUnknownError,
    newest_version,
    pod_version,
    short_hash,
    versioned_kinds,
)
from policies.workloadspread.workloads import TargetWorkload
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    REPLICA_SET,
    member,
    replica_set,
    workload,
)

WEB = LabelSelector(equals_all({"app": "web"}))
ALL_KINDS = versioned_kinds(["Deployment", "CloneSet"])


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("v1", ("", "v1")),
        ("apps/v1", ("apps", "v1")),
        ("apps.kruise.io/v1beta1", ("apps.kruise.io", "v1beta1")),
        ("", ("", "")),
        ("/", ("", "")),
        ("apps/", ("apps", "")),
    ],
)
def test_api_versions(text: str, parsed: tuple[str, str]) -> None:
    assert parse_group_version(text) == parsed


def test_an_invalid_api_version_is_rejected_or_means_the_core_group() -> None:
    odd = WorkloadReference("apps/v1/extra", "Deployment", "web")
    with pytest.raises(ApiVersionError, match="unexpected GroupVersion string: apps/v1/extra"):
        _ = odd.identity
    assert odd.lenient_identity == ObjectKey("", "Deployment", "web")


def test_deployments_have_replica_sets() -> None:
    assert versioned_kinds(["Deployment"]) == {"deployment", "replicaset"}
    assert versioned_kinds(["CloneSet"]) == {"cloneset"}
    assert versioned_kinds(["Deployment", "ReplicaSet"]) == DEFAULT_VERSIONED_KINDS


@pytest.mark.parametrize(
    ("labels", "version"),
    [
        ({}, "versionIgnored"),
        ({"pod-template-hash": "5d4"}, "5d4"),
        ({"controller-revision-hash": "web-7f9"}, "7f9"),
        ({"controller-revision-hash": "7f9"}, "7f9"),
        ({"pod-template-hash": "5d4", "controller-revision-hash": "web-7f9"}, "5d4"),
        ({"pod-template-hash": ""}, ""),
    ],
)
def test_a_pod_s_version_is_in_its_labels(labels: dict[str, str], version: str) -> None:
    assert pod_version(member("web-1", labels=labels), ALL_KINDS) == version


def test_unversioned_kinds_have_one_version() -> None:
    labels = {"pod-template-hash": "5d4"}
    assert pod_version(member("a", labels=labels), DEFAULT_VERSIONED_KINDS) == "versionIgnored"
    assert pod_version(member("a", labels=labels, controller=None), ALL_KINDS) == "versionIgnored"


def test_the_hash_of_a_revision() -> None:
    assert [short_hash(text) for text in ("web-blue-7f9", "7f9", "")] == ["7f9", "7f9", ""]


@pytest.mark.parametrize(
    ("one", "version"),
    [
        (None, ""),
        (workload(CLONE_SET, update_revision="web-7f9"), "7f9"),
        (workload(CLONE_SET, generation=2, observed_generation=2), ""),
        (workload(REPLICA_SET, labels={"pod-template-hash": "5d4"}), "5d4"),
    ],
)
def test_the_newest_version(one: TargetWorkload | None, version: str) -> None:
    assert newest_version(one, (), ALL_KINDS, FIXED) == version


def test_an_unversioned_kind_has_no_newer_version() -> None:
    one = workload(CLONE_SET, update_revision="web-7f9")
    assert newest_version(one, (), DEFAULT_VERSIONED_KINDS, FIXED) == "versionIgnored"


def test_a_standalone_replica_set_has_the_version_of_its_pods() -> None:
    pods_version = pod_version(member("a", controller=REPLICA_SET), DEFAULT_VERSIONED_KINDS)
    standalone = workload(REPLICA_SET)
    assert newest_version(standalone, (), DEFAULT_VERSIONED_KINDS, FIXED) == pods_version
    assert newest_version(standalone, (), DEFAULT_VERSIONED_KINDS, UPSTREAM) == ""


def test_a_clone_set_s_change_has_to_be_observed() -> None:
    changed = workload(CLONE_SET, generation=3, observed_generation=2)
    with pytest.raises(CurrentRevisionUnknownError, match="its last change is not observed yet"):
        newest_version(changed, (), ALL_KINDS, FIXED)


class TestDeployment:
    def newest(self, *sets: TargetWorkload) -> str:
        deployment = workload(DEPLOYMENT, selector=WEB, template={"v": 2})
        return newest_version(deployment, sets, DEFAULT_VERSIONED_KINDS, FIXED)

    def test_the_newest_version_is_that_of_the_replica_set_with_its_template(self) -> None:
        sets = (replica_set("old", template={"v": 1}), replica_set("new", template={"v": 2}))
        assert self.newest(*sets) == "new"

    @pytest.mark.parametrize(
        "other",
        [
            replica_set("old", template={"v": 1}),
            replica_set("gone", template={"v": 2}, terminating=True),
            replica_set("free", template={"v": 2}, controller=None),
            replica_set("foreign", template={"v": 2}, controller=CLONE_SET, labels={}),
        ],
    )
    def test_others_do_not_count(self, other: TargetWorkload) -> None:
        with pytest.raises(CurrentRevisionUnknownError, match="no ReplicaSet has its template yet"):
            self.newest(other)
