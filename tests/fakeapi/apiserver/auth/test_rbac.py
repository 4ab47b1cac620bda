"""Enforced RBAC: permissions of users, and the messages of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.http_messages import User
from tests.fakeapi.api_requests import PODS, Ask
from tests.fakeapi.apiserver.auth.rbac_objects import (
    BOB,
    JANE,
    NOBODY,
    READ_PODS,
    ROOT,
    binding,
    role,
)

IN_CORE, IN_DEFAULT = 'in API group ""', 'in the namespace "default"'


def bind(api: Api, rule: dict[str, Any]) -> None:
    """Bind jane to a role with the rule, in the whole cluster."""
    api.load([role([rule]), binding("User", "jane")])


@pytest.mark.parametrize(
    ("method", "path", "name", "denied"),
    [
        ("GET", f"{PODS}/p", 'pods "p"', f'get resource "pods" {IN_CORE} {IN_DEFAULT}'),
        (
            "GET",
            "/apis/apps/v1/deployments",
            "deployments.apps",
            'list resource "deployments" in API group "apps" at the cluster scope',
        ),
        (
            "POST",
            f"{PODS}/p/eviction",
            'pods "p"',
            f'create resource "pods/eviction" {IN_CORE} {IN_DEFAULT}',
        ),
        ("GET", f"{PODS}/p/log", 'pods "p"', f'get resource "pods/log" {IN_CORE} {IN_DEFAULT}'),
        ("DELETE", PODS, "pods", f'deletecollection resource "pods" {IN_CORE} {IN_DEFAULT}'),
        (
            "GET",
            "/api/v1/namespaces/team",
            'namespaces "team"',
            f'get resource "namespaces" {IN_CORE} in the namespace "team"',
        ),
        ("GET", "/metrics", "", 'get path "/metrics"'),
    ],
)
def test_a_user_without_bindings_is_refused_in_upstreams_words(
    ask: Ask, method: str, path: str, name: str, denied: str
) -> None:
    status, answer = ask(JANE, method, path, {} if method == "POST" else None)
    subject = f"{name} is forbidden" if name else "forbidden"
    message = f'{subject}: User "jane" cannot {denied}'
    assert (status, answer["reason"], answer["message"]) == (403, "Forbidden", message)


def test_masters_may_do_everything_and_all_users_may_discover(ask: Ask) -> None:
    assert ask(ROOT, "GET", PODS)[0] == 200
    assert ask(JANE, "GET", "/apis/apps/v1")[0] == 200
    assert ask(NOBODY, "GET", "/version")[0] == 200
    assert ask(NOBODY, "GET", "/apis")[0] == 403


@pytest.mark.parametrize(
    ("bound", "user", "status"),
    [
        (binding("User", "jane"), JANE, 200),
        (binding("User", "joe"), JANE, 403),
        (binding("Group", "devs"), JANE, 200),
        (binding("ServiceAccount", "bob", of="default"), BOB, 200),
        (binding("ServiceAccount", "bob", of="team"), BOB, 403),
        (binding("ServiceAccount", "bob", "default", "ClusterRole"), BOB, 200),
        (binding("User", "jane", "default"), JANE, 200),
        (binding("User", "jane", "kube-system"), JANE, 403),
    ],
)
def test_a_binding_applies_to_its_subjects_in_its_namespace(
    api: Api, ask: Ask, bound: dict[str, Any], user: User, status: int
) -> None:
    namespace = bound["metadata"].get("namespace", "")
    api.load([role([READ_PODS]), role([READ_PODS], namespace or "default"), bound])
    assert ask(user, "GET", PODS)[0] == status


@pytest.mark.parametrize(
    ("rule", "method", "path", "verdict"),
    [
        ({**READ_PODS, "verbs": ["*"]}, "DELETE", f"{PODS}/p", "allowed"),
        ({**READ_PODS, "apiGroups": ["apps"]}, "GET", PODS, "forbidden"),
        ({**READ_PODS, "resources": ["*"]}, "GET", "/api/v1/nodes", "allowed"),
        ({**READ_PODS, "resources": ["pods/status"]}, "GET", f"{PODS}/p/status", "allowed"),
        (READ_PODS, "GET", f"{PODS}/p/status", "forbidden"),
        ({**READ_PODS, "resources": ["*/status"]}, "GET", f"{PODS}/p/status", "allowed"),
        ({**READ_PODS, "resourceNames": ["p"]}, "GET", f"{PODS}/p", "allowed"),
        ({**READ_PODS, "resourceNames": ["p"]}, "GET", f"{PODS}/q", "forbidden"),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}, "GET", "/metrics/x", "allowed"),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, "GET", "/metrics/x", "forbidden"),
    ],
)
def test_a_rule_allows_its_verbs_and_resources(
    api: Api, ask: Ask, rule: dict[str, Any], method: str, path: str, verdict: str
) -> None:
    bind(api, rule)
    assert (ask(JANE, method, path)[0] == 403) is (verdict == "forbidden")


def test_a_name_selected_by_field_counts_as_a_name(api: Api, ask: Ask) -> None:
    bind(api, {**READ_PODS, "resourceNames": ["p"]})
    assert ask(JANE, "GET", PODS, query={"fieldSelector": "metadata.name=p"})[0] == 200
    assert ask(JANE, "GET", PODS, query={"fieldSelector": "metadata.name=q"})[0] == 403


def test_permissions_end_with_their_binding(api: Api, ask: Ask) -> None:
    bind(api, READ_PODS)
    assert ask(JANE, "GET", PODS)[0] == 200
    ask(ROOT, "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b")
    assert ask(JANE, "GET", PODS)[0] == 403


def test_reviews_return_permissions_and_their_reasons(api: Api, ask: Ask) -> None:
    api.load([role([READ_PODS]), binding("Group", "devs")])
    reviews = "/apis/authorization.k8s.io/v1"
    asked = {"verb": "list", "resource": "pods", "namespace": "default"}
    body = {"spec": {"resourceAttributes": asked}}
    status = ask(JANE, "POST", f"{reviews}/selfsubjectaccessreviews", body)[1]["status"]
    reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "devs"'
    assert status == {"allowed": True, "reason": reason}
    others = {"spec": {"resourceAttributes": asked, "user": "joe"}}
    answer = ask(ROOT, "POST", f"{reviews}/subjectaccessreviews", others)[1]
    assert answer["status"] == {"allowed": False}
    rules = {"spec": {"namespace": "default"}}
    status = ask(JANE, "POST", f"{reviews}/selfsubjectrulesreviews", rules)[1]["status"]
    assert READ_PODS in status["resourceRules"]


def test_permitted_users_may_impersonate_others(api: Api, ask: Ask) -> None:
    bind(api, READ_PODS)
    assert ask(ROOT, "GET", PODS, impersonated=JANE)[0] == 200
    assert ask(ROOT, "GET", "/api/v1/nodes", impersonated=JANE)[0] == 403
    status, answer = ask(JANE, "GET", PODS, impersonated=ROOT)
    assert status == 403
    assert answer["message"] == (
        'users "root" is forbidden: User "jane" cannot impersonate resource "users" in API group '
        '"" at the cluster scope'
    )


def test_a_reset_keeps_rbac_enforced(api: Api, ask: Ask) -> None:
    api.reset()
    assert ask(JANE, "GET", PODS)[0] == 403
    assert ask(JANE, "GET", "/api")[0] == 200
