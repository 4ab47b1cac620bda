"""ResourceQuota admission: what fits, what is charged, and upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import pod_request
from tests.fakeapi.api_requests import DEFAULT, MAPS, PODS, SERVICES, Ask, named

QUOTAS = f"{DEFAULT}/resourcequotas"
CLAIMS = f"{DEFAULT}/persistentvolumeclaims"


def limit(ask: Ask, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> None:
    """Create the quota q that has been counted; ``used`` is its usage, by default none."""
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    assert ask("POST", QUOTAS, quota)[0] == 201
    used = dict.fromkeys(hard, "0") if used is None else used
    counted = {**quota, "status": {"hard": hard, "used": used}}
    assert ask("PUT", f"{QUOTAS}/q/status", counted)[0] == 200


def usage(ask: Ask) -> Any:
    return ask("GET", f"{QUOTAS}/q")[1]["status"]["used"]


def sized(name: str = "p", cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    pod = pod_request(containers=[{"name": "c", "image": "i", "resources": resources}], **spec)
    pod["metadata"]["name"] = name
    return pod


def test_a_create_that_fits_is_charged(ask: Ask) -> None:
    limit(ask, {"pods": "2", "requests.cpu": "1"})
    assert ask("POST", PODS, sized())[0] == 201
    assert usage(ask) == {"pods": "1", "requests.cpu": "500m"}


def test_a_create_that_exceeds_a_quota_is_refused_and_charges_nothing(ask: Ask) -> None:
    limit(ask, {"pods": "2", "requests.cpu": "1"}, {"pods": "1", "requests.cpu": "800m"})
    status, refusal = ask("POST", PODS, sized())
    assert (status, refusal["reason"], refusal["message"]) == (
        403,
        "Forbidden",
        (
            'pods "p" is forbidden: exceeded quota: q, requested: requests.cpu=500m, '
            "used: requests.cpu=800m, limited: requests.cpu=1"
        ),
    )
    assert usage(ask) == {"pods": "1", "requests.cpu": "800m"}


@pytest.mark.parametrize(
    ("hard", "used", "detail"),
    [
        (
            {"limits.cpu": "1", "memory": "1Gi"},
            None,
            "failed quota: q: must specify limits.cpu for: c; memory for: c",
        ),
        ({"pods": "1", "cpu": "1"}, {}, "status unknown for quota: q, resources: cpu,pods"),
    ],
    ids=["missing limits", "usage unknown"],
)
def test_a_pod_that_cannot_be_counted_is_refused(
    ask: Ask, hard: dict[str, str], used: dict[str, str] | None, detail: str
) -> None:
    limit(ask, hard, used)
    status, refusal = ask("POST", PODS, sized())
    assert (status, refusal["message"]) == (403, f'pods "p" is forbidden: {detail}')


def test_a_charge_is_a_write_of_the_status_by_the_server(ask: Ask) -> None:
    limit(ask, {"pods": "5"})
    assert ask("POST", PODS, sized())[0] == 201
    entries = ask("GET", f"{QUOTAS}/q")[1]["metadata"]["managedFields"]
    [charge] = [entry for entry in entries if entry["manager"] == "kube-apiserver"]
    assert (charge["operation"], charge["subresource"], charge["fieldsV1"]) == (
        "Update",
        "status",
        {"f:status": {"f:used": {"f:pods": {}}}},
    )


def test_a_write_that_a_quota_refuses_is_charged_to_none(ask: Ask) -> None:
    limit(ask, {"pods": "5"})
    other = {"metadata": {"name": "z"}, "spec": {"hard": {"pods": "0"}}}
    ask("POST", QUOTAS, other)
    status = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
    ask("PUT", f"{QUOTAS}/z/status", {**other, "status": status})
    assert ask("POST", PODS, sized())[1]["message"] == (
        'pods "p" is forbidden: exceeded quota: z, requested: pods=1, used: pods=0, limited: pods=0'
    )
    assert usage(ask) == {"pods": "0"}


def test_a_pod_with_a_generated_name_is_refused_by_that_name(ask: Ask) -> None:
    limit(ask, {"pods": "0"})
    pod = pod_request()
    pod["metadata"] = {"generateName": "web-"}
    assert ask("POST", PODS, pod)[1]["message"].startswith('pods "web-')


def test_a_failed_create_and_a_dry_run_charge_nothing(ask: Ask) -> None:
    limit(ask, {"count/configmaps": "2"})
    assert ask("POST", MAPS, named("a"), dryRun="All")[0] == 201
    assert ask("POST", MAPS, named("a"))[0] == 201
    assert ask("POST", MAPS, named("a"))[0] == 409
    assert usage(ask) == {"count/configmaps": "1"}


def test_a_quota_counts_objects_of_any_kind_under_both_names(ask: Ask) -> None:
    limit(ask, {"count/configmaps": "1", "configmaps": "5", "count/deployments.apps": "1"})
    assert ask("POST", MAPS, named("a"))[0] == 201
    assert ask("POST", MAPS, named("b"))[1]["message"] == (
        'configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
        "used: count/configmaps=1, limited: count/configmaps=1"
    )
    assert usage(ask) == {
        "count/configmaps": "1",
        "configmaps": "1",
        "count/deployments.apps": "0",
    }


def test_an_update_charges_the_difference(ask: Ask) -> None:
    limit(ask, {"services.nodeports": "1"})
    ports = [{"port": 1, "name": "a"}]
    service = {"metadata": {"name": "s"}, "spec": {"ports": ports}}
    assert ask("POST", SERVICES, service)[0] == 201
    assert usage(ask) == {"services.nodeports": "0"}
    assert ask("PATCH", f"{SERVICES}/s", {"spec": {"type": "NodePort"}})[0] == 200
    assert usage(ask) == {"services.nodeports": "1"}
    more = {"spec": {"ports": [*ports, {"port": 2, "name": "b"}]}}
    assert ask("PATCH", f"{SERVICES}/s", more)[1]["message"] == (
        'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=1, '
        "used: services.nodeports=1, limited: services.nodeports=1"
    )


def test_a_resize_charges_the_difference(ask: Ask) -> None:
    limit(ask, {"requests.cpu": "1"})
    ask("POST", PODS, sized(cpu="400m"))
    larger = sized(cpu="900m")
    assert ask("PUT", f"{PODS}/p/resize", larger)[0] == 200
    assert usage(ask) == {"requests.cpu": "900m"}
    larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert ask("PUT", f"{PODS}/p/resize", larger)[1]["message"].endswith(
        "requested: requests.cpu=1100m, used: requests.cpu=900m, limited: requests.cpu=1"
    )


def test_a_pod_that_changes_its_scope_is_charged_to_the_other_quota(ask: Ask) -> None:
    limit(ask, {"pods": "1"}, scopes=["Terminating"])
    assert ask("POST", PODS, sized())[0] == 201
    assert usage(ask) == {"pods": "0"}
    assert ask("PATCH", f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 60}})[0] == 200
    assert usage(ask) == {"pods": "1"}


@pytest.mark.parametrize(
    ("scope", "used"),
    [("BestEffort", "0"), ("NotBestEffort", "1"), ("NotTerminating", "1"), ("Terminating", "0")],
)
def test_a_quota_with_a_scope_counts_the_pods_in_it(ask: Ask, scope: str, used: str) -> None:
    limit(ask, {"pods": "1"}, scopes=[scope])
    assert ask("POST", PODS, sized())[0] == 201
    assert usage(ask) == {"pods": used}


def test_a_larger_claim_is_charged_and_a_smaller_one_gives_nothing_back(ask: Ask) -> None:
    limit(ask, {"requests.storage": "3Gi"}, {"requests.storage": "1Gi"})
    claim = {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    assert ask("POST", CLAIMS, claim)[0] == 201
    size = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert ask("PATCH", f"{CLAIMS}/c", size)[0] == 200
    assert usage(ask) == {"requests.storage": "3Gi"}


def test_a_quota_that_was_never_counted_refuses_nothing(ask: Ask) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    assert ask("POST", QUOTAS, quota)[0] == 201
    assert ask("POST", PODS, sized())[0] == 201
