"""Aggregated ClusterRoles have the rules of the roles that they select."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import Document, manifest
from tests.fakeapi.api_requests import send

RBAC = "rbac.authorization.k8s.io/v1"
CLUSTER_ROLES = f"/apis/{RBAC}/clusterroles"
PODS_RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
JOBS_RULE = {"verbs": ["get"], "apiGroups": ["batch"], "resources": ["jobs"]}
TO_ADMIN, TO_VIEW = {"to": "admin"}, {"to": "view"}


def role(name: str, *rules: Document, labels: Document | None = None, **fields: Any) -> Document:
    metadata = {"labels": labels} if labels else {}
    fields |= {"metadata": metadata, "rules": list(rules)}
    return manifest("ClusterRole", name, version=RBAC, namespace="", **fields)


def aggregated(name: str, *selectors: Document, labels: Document | None = None) -> Document:
    rule = {"clusterRoleSelectors": list(selectors)}
    return role(name, labels=labels, aggregationRule=rule)


def create(api: Api, *roles: Document) -> None:
    for document in roles:
        assert send(api, "POST", CLUSTER_ROLES, document).status == 201


def get(api: Api, name: str) -> Document:
    found: Document = orjson.loads(send(api, "GET", f"{CLUSTER_ROLES}/{name}").body)
    return found


def rules(api: Api, name: str) -> list[Document]:
    return get(api, name)["rules"] or []


ADMIN = aggregated("admin", {"matchLabels": TO_ADMIN})


def test_a_role_collects_the_rules_of_roles_created_before_and_after_it(api: Api) -> None:
    create(api, role("b", PODS_RULE, labels=TO_ADMIN), ADMIN)
    assert rules(api, "admin") == [PODS_RULE]
    create(api, role("a", JOBS_RULE, PODS_RULE, labels=TO_ADMIN), role("c", labels=TO_VIEW))
    assert rules(api, "admin") == [JOBS_RULE, PODS_RULE]
    managers = [entry["manager"] for entry in get(api, "admin")["metadata"]["managedFields"]]
    assert "clusterrole-aggregation-controller" in managers


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("DELETE", None),
        ("PATCH", {"metadata": {"labels": {"to": "nobody"}}}),
        ("PATCH", {"rules": []}),
    ],
    ids=["deleted", "no longer selected", "emptied"],
)
def test_rules_that_are_no_longer_selected_are_removed(api: Api, method: str, body: Any) -> None:
    create(api, role("a", JOBS_RULE, labels=TO_ADMIN), role("b", PODS_RULE, labels=TO_ADMIN), ADMIN)
    send(api, method, f"{CLUSTER_ROLES}/a", body)
    assert rules(api, "admin") == [PODS_RULE]


def test_rules_that_somebody_else_sets_are_replaced(api: Api) -> None:
    create(api, role("a", PODS_RULE, labels=TO_ADMIN), ADMIN)
    send(api, "PATCH", f"{CLUSTER_ROLES}/admin", {"rules": [JOBS_RULE]})
    assert rules(api, "admin") == [PODS_RULE]


def test_roles_that_are_aggregated_may_be_selected(api: Api) -> None:
    by_expression = {"matchExpressions": [{"key": "to", "operator": "In", "values": ["view"]}]}
    create(api, ADMIN, aggregated("viewer", by_expression, labels=TO_ADMIN))
    create(api, role("z", PODS_RULE, labels=TO_VIEW))
    assert rules(api, "viewer") == rules(api, "admin") == [PODS_RULE]


def test_roles_that_select_each_other_come_to_rest(api: Api) -> None:
    create(api, aggregated("x", {"matchLabels": TO_ADMIN}, labels=TO_VIEW))
    create(api, aggregated("y", {"matchLabels": TO_VIEW}, labels=TO_ADMIN))
    create(api, role("a", PODS_RULE, labels=TO_ADMIN), role("b", JOBS_RULE, labels=TO_VIEW))
    for name in ("x", "y"):
        assert sorted(rules(api, name), key=str) == sorted([PODS_RULE, JOBS_RULE], key=str)


def test_loaded_roles_are_aggregated_and_a_dry_run_changes_nothing(api: Api) -> None:
    api.load([ADMIN, role("a", PODS_RULE, labels=TO_ADMIN)])
    assert rules(api, "admin") == [PODS_RULE]
    query = {"dryRun": "All"}
    send(api, "POST", CLUSTER_ROLES, role("b", JOBS_RULE, labels=TO_ADMIN), query=query)
    assert rules(api, "admin") == [PODS_RULE]


REFUSED = [
    (
        {"aggregationRule": {}},
        "Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
    ),
    (
        {"rules": [{"verbs": ["get"], "resources": ["pods"]}]},
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
    ),
    (
        {"rules": [PODS_RULE | {"nonResourceURLs": ["/a"]}]},
        '["/a"]: rules cannot apply to both regular resources and non-resource URLs',
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=range(len(REFUSED)))
def test_an_invalid_role_is_refused(api: Api, fields: Document, message: str) -> None:
    answer = send(api, "POST", CLUSTER_ROLES, role("r") | fields)
    assert answer.status == 422
    assert orjson.loads(answer.body)["message"].endswith(message)


def test_a_role_of_a_namespace_has_no_paths(api: Api) -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": ["/a"]}
    document = manifest("Role", "r", version=RBAC, rules=[rule])
    answer = send(api, "POST", f"/apis/{RBAC}/namespaces/default/roles", document)
    assert answer.status == 422
    message = 'Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs'
    assert orjson.loads(answer.body)["message"].endswith(message)
