"""Users grant only permissions that they hold."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.auth.escalation import MAX_COMBINATIONS as MOST
from fakeapi.apiserver.auth.escalation import compact, missing_rules
from fakeapi.apiserver.endpoints import Api
from tests.builders import Document, manifest
from tests.fakeapi.api_requests import APPLY, MERGE, Ask
from tests.fakeapi.apiserver.auth.rbac_objects import (
    JANE,
    RBAC,
    READ_PODS,
    ROOT,
    binding,
    role,
)

GROUP = "rbac.authorization.k8s.io"
BASE = f"/apis/{GROUP}/v1"
ROLES, CLUSTER_ROLES = f"{BASE}/namespaces/default/roles", f"{BASE}/clusterroles"
BINDINGS = f"{BASE}/namespaces/default/rolebindings"
CLUSTER_BINDINGS = f"{BASE}/clusterrolebindings"
WRITE_RBAC = {
    "verbs": ["get", "create", "update", "patch"],
    "apiGroups": [GROUP],
    "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
}
READ_SECRETS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}
METRICS = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
EVERYTHING: list[Document] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
GRANTING = (
    'user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions '
    "not currently held:\n"
)
SECRETS_MISSING = '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'


WHERE = 'in API group "" in the namespace "default"'


def may(*verbs: str, names: tuple[str, ...] = ()) -> Document:
    """Return a rule for special verbs on roles."""
    rule = {"verbs": list(verbs), "apiGroups": [GROUP], "resources": ["roles", "clusterroles"]}
    return rule | ({"resourceNames": list(names)} if names else {})


def hold(api: Api, *rules: Document) -> None:
    """Let jane write RBAC objects, and hold the rules, in the whole cluster."""
    api.load(
        [
            manifest("ClusterRole", "held", version=RBAC, rules=[WRITE_RBAC, *rules]),
            binding("User", "jane") | {"metadata": {"name": "held"}, "roleRef": reference("held")},
        ]
    )


def reference(name: str, kind: str = "ClusterRole") -> Document:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def refusal(resource: str, name: str, detail: str) -> str:
    return f'{resource}.{GROUP} "{name}" is forbidden: {detail}'


WRITES = ["create", "update", "patch", "apply", "applied create"]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("held", "status"), [((), 403), ((READ_SECRETS,), 200)])
@pytest.mark.parametrize("namespace", ["", "default"])
def test_a_role_has_only_rules_that_its_writer_holds(
    api: Api, ask: Ask, write: str, held: tuple[Document, ...], status: int, namespace: str
) -> None:
    hold(api, READ_PODS, *held)
    path = ROLES if namespace else CLUSTER_ROLES
    made = role([READ_PODS, READ_SECRETS], namespace)
    if write not in ("create", "applied create"):
        assert ask(JANE, "POST", path, role([READ_PODS], namespace))[0] == 201
    answered, answer = _write(ask, write, path, made)
    if status == 403:
        detail = GRANTING + SECRETS_MISSING
        resource = "roles" if namespace else "clusterroles"
        assert (answered, answer["message"]) == (403, refusal(resource, "r", detail))
    else:
        assert answered in (200, 201)


def _write(ask: Ask, write: str, path: str, document: Document) -> tuple[int, Any]:
    match write:
        case "create":
            return ask(JANE, "POST", path, document)
        case "update":
            return ask(JANE, "PUT", f"{path}/r", document)
        case "patch":
            rules = {"rules": document["rules"]}
            return ask(JANE, "PATCH", f"{path}/r", rules, content_type=MERGE)
    query = {"fieldManager": "m", "force": "true"}
    return ask(JANE, "PATCH", f"{path}/r", document, content_type=APPLY, query=query)


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (may("escalate"), 200),
        (may("escalate", names=("r",)), 200),
        (may("escalate", names=("other",)), 403),
        (may("bind"), 403),
        (may("*"), 200),
    ],
)
def test_a_user_who_may_escalate_a_role_writes_any_rule(
    api: Api, ask: Ask, rule: Document, status: int
) -> None:
    hold(api, rule)
    api.load([role([READ_PODS])])
    assert ask(JANE, "PUT", f"{CLUSTER_ROLES}/r", role([READ_SECRETS]))[0] == status


def test_masters_and_those_who_hold_everything_grant_everything(api: Api, ask: Ask) -> None:
    assert ask(ROOT, "POST", CLUSTER_ROLES, role([READ_SECRETS, METRICS]))[0] == 201
    hold(api, *EVERYTHING)
    assert ask(JANE, "PUT", f"{CLUSTER_ROLES}/r", role(EVERYTHING))[0] == 200
    assert ask(JANE, "POST", CLUSTER_BINDINGS, binding("User", "joe"))[0] == 201


@pytest.mark.parametrize(
    ("rules", "bound", "path", "status"),
    [
        ((), binding("User", "joe"), CLUSTER_BINDINGS, 403),
        ((READ_SECRETS,), binding("User", "joe"), CLUSTER_BINDINGS, 201),
        ((may("bind"),), binding("User", "joe"), CLUSTER_BINDINGS, 201),
        ((may("bind", names=("r",)),), binding("User", "joe"), CLUSTER_BINDINGS, 201),
        ((may("bind", names=("q",)),), binding("User", "joe"), CLUSTER_BINDINGS, 403),
        ((may("escalate"),), binding("User", "joe"), CLUSTER_BINDINGS, 403),
        ((), binding("User", "joe", "default"), BINDINGS, 403),
        ((READ_SECRETS,), binding("User", "joe", "default"), BINDINGS, 201),
        ((), binding("User", "joe", "default", "ClusterRole"), BINDINGS, 403),
        ((may("bind"),), binding("User", "joe", "default", "ClusterRole"), BINDINGS, 201),
    ],
    ids=range(10),
)
def test_a_binding_refers_to_a_role_that_its_writer_holds_or_may_bind(
    api: Api, ask: Ask, rules: tuple[Document, ...], bound: Document, path: str, status: int
) -> None:
    hold(api, *rules)
    api.load([role([READ_SECRETS]), role([READ_SECRETS], "default")])
    answered, answer = ask(JANE, "POST", path, bound)
    assert answered == status
    if status == 403:
        resource = path.rpartition("/")[2]
        assert answer["message"] == refusal(resource, "b", GRANTING + SECRETS_MISSING)


def test_a_user_does_not_become_cluster_admin_by_a_binding(api: Api, ask: Ask) -> None:
    hold(api)
    bound = binding("User", "jane") | {"roleRef": reference("cluster-admin")}
    status, answer = ask(JANE, "POST", CLUSTER_BINDINGS, bound)
    missing = (
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    assert (status, answer["message"]) == (
        403,
        refusal("clusterrolebindings", "b", GRANTING + missing),
    )
    assert ask(JANE, "GET", "/api/v1/nodes")[0] == 403


def test_a_binding_to_a_role_that_does_not_exist_is_not_found(api: Api, ask: Ask) -> None:
    hold(api)
    status, answer = ask(JANE, "POST", CLUSTER_BINDINGS, binding("User", "joe"))
    assert (status, answer["message"]) == (404, f'clusterroles.{GROUP} "r" not found')


def test_roles_that_were_not_found_are_named(api: Api, ask: Ask) -> None:
    hold(api)
    dangling = {"metadata": {"name": "x"}, "roleRef": reference("gone")}
    api.load([binding("User", "jane") | dangling])
    status, answer = ask(JANE, "POST", CLUSTER_ROLES, role([READ_SECRETS]))
    ending = f'; resolution errors: [clusterroles.{GROUP} "gone" not found]'
    assert status == 403
    assert answer["message"].endswith(SECRETS_MISSING + ending)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"metadata": {"finalizers": ["a.com/b"]}}, 200),
        ({"metadata": {"ownerReferences": None}}, 200),
        ({"metadata": {"labels": {"a": "b"}}}, 403),
        ({"metadata": {"annotations": {"a": "b"}}}, 403),
    ],
    ids=["finalizers", "owners", "labels", "annotations"],
)
@pytest.mark.parametrize("resource", ["clusterroles/r", "clusterrolebindings/b"])
def test_owners_and_finalizers_of_any_role_may_be_changed(
    api: Api, ask: Ask, resource: str, change: Document, status: int
) -> None:
    hold(api)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    for document in (role([READ_SECRETS]), binding("User", "joe")):
        metadata = {"name": resource[-1], "ownerReferences": [owner]}
        api.load([document | {"metadata": metadata}])
    api.load([role([READ_SECRETS])])
    assert ask(JANE, "PATCH", f"{BASE}/{resource}", change, content_type=MERGE)[0] == status


@pytest.mark.parametrize(
    ("held", "status"), [((READ_PODS,), 403), (tuple(EVERYTHING), 201), ((may("escalate"),), 201)]
)
def test_an_aggregation_rule_needs_all_permissions(
    api: Api, ask: Ask, held: tuple[Document, ...], status: int
) -> None:
    hold(api, *held)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    answered, answer = ask(JANE, "POST", CLUSTER_ROLES, role([]) | {"aggregationRule": selectors})
    assert answered == status
    if status == 403:
        detail = "must have cluster-admin privileges to use the aggregationRule"
        assert answer["message"] == refusal("clusterroles", "r", detail)


def test_a_rule_of_too_many_combinations_is_refused_at_once(api: Api, ask: Ask) -> None:
    hold(api)
    names = [f"n{number}" for number in range(300)]
    rule = {"verbs": names, "apiGroups": names, "resources": names}
    status, answer = ask(JANE, "POST", CLUSTER_ROLES, role([rule]))
    assert status == 403
    sizes = f"27000000 combinations of groups, resources, names and verbs; expected at most {MOST}"
    assert sizes in answer["message"]


def test_an_apply_that_creates_needs_the_right_to_create(api: Api, ask: Ask) -> None:
    rule = {"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"]}
    api.load([role([rule]), binding("User", "jane")])
    path = "/api/v1/namespaces/default/configmaps/c"
    body = manifest("ConfigMap", "c")
    options = {"content_type": APPLY, "query": {"fieldManager": "m"}}
    status, answer = ask(JANE, "PATCH", path, body, **options)
    assert (status, answer["message"]) == (
        403,
        f'configmaps "c" is forbidden: User "jane" cannot create resource "configmaps" {WHERE}',
    )
    api.load([body])
    assert (
        ask(JANE, "PATCH", path, manifest("ConfigMap", "c", data={"a": "b"}), **options)[0] == 200
    )


def test_an_update_that_creates_needs_the_right_to_create(api: Api, ask: Ask) -> None:
    rule = {"verbs": ["update"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    api.load([role([rule]), binding("User", "jane")])
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    lease = manifest("Lease", "l", version="coordination.k8s.io/v1")
    status, answer = ask(JANE, "PUT", path, lease)
    assert status == 403
    assert 'User "jane" cannot create resource "leases"' in answer["message"]


def rule(
    verbs: str, resources: str = "", groups: str = "", names: str = "", paths: str = ""
) -> Document:
    """Return a rule from words; the core group is ``core``."""
    listed = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
        "resourceNames": names.split(),
        "nonResourceURLs": paths.split(),
    }
    return {name: values for name, values in listed.items() if values}


COVERED = [
    (rule("get list", "pods", "core"), rule("get", "pods", "core"), []),
    (rule("*", "*", "*"), rule("get delete", "pods/status nodes", "core apps", "a b"), []),
    (rule("get", "*/status", "core"), rule("get", "pods/status", "core"), []),
    (
        rule("get", "*/status", "core"),
        rule("get", "pods", "core"),
        ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ),
    (
        rule("get", "pods", "core", "a b"),
        rule("get", "pods", "core", "a c"),
        ['{APIGroups:[""], Resources:["pods"], ResourceNames:["c"], Verbs:["get"]}'],
    ),
    (
        rule("get", "pods", "core", "a"),
        rule("get", "pods", "core"),
        ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ),
    (rule("get", "pods", "core"), rule("get", "pods", "core", "a"), []),
    (
        rule("get", "pods", "core"),
        rule("list get watch", "pods jobs", "core"),
        [
            '{APIGroups:[""], Resources:["jobs"], Verbs:["list" "get" "watch"]}',
            '{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',
        ],
    ),
    (rule("get", paths="/a/*"), rule("get", paths="/a/b /a/*"), []),
    (
        rule("get", paths="/a/*"),
        rule("get post", paths="/a/b"),
        ['{NonResourceURLs:["/a/b"], Verbs:["post"]}'],
    ),
    (
        rule("get", paths="/a/b"),
        rule("get", paths="*"),
        ['{NonResourceURLs:["*"], Verbs:["get"]}'],
    ),
    (
        rule("*", paths="*"),
        rule("get", "pods", "core"),
        ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ),
]


@pytest.mark.parametrize(("held", "granted", "missing"), COVERED, ids=range(len(COVERED)))
def test_what_a_rule_does_not_cover_is_listed_by_resource(
    held: Document, granted: Document, missing: list[str]
) -> None:
    assert compact(list(missing_rules([held], [granted]))) == missing
