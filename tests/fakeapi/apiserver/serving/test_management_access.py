"""The management API needs the credentials and the rights that the API itself needs."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.serving.client_access import read_admin_credentials
from fakeapi.apiserver.wire.http_messages import User
from tests.builders import manifest

ENDPOINTS = [
    ("GET", "export"),
    ("GET", "history"),
    ("GET", "requests"),
    ("GET", "faults"),
    ("GET", "no-such-action"),
    ("POST", "load"),
    ("POST", "compact"),
    ("POST", "snapshot"),
    ("POST", "clock"),
    ("POST", "fork"),
    ("POST", "reset"),
]
TOKENS = {"janes": User("jane"), "readers": User("reader", groups=("readers",))}
RBAC = "rbac.authorization.k8s.io"
EXPORT = {"verbs": ["get"], "nonResourceURLs": ["/_fakeapi/export"]}
READER = [
    manifest("ClusterRole", "r", version=f"{RBAC}/v1", namespace="", rules=[EXPORT]),
    manifest(
        "ClusterRoleBinding",
        "r",
        version=f"{RBAC}/v1",
        namespace="",
        subjects=[{"apiGroup": RBAC, "kind": "Group", "name": "readers"}],
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "r"},
    ),
]


async def statuses(cluster: FakeCluster, token: str) -> dict[str, int]:
    """Return the status of each endpoint for a token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    tls = read_admin_credentials(cluster.kubeconfig_path).tls or True
    found = {}
    async with aiohttp.ClientSession(cluster.url, headers=headers) as http:
        for method, action in ENDPOINTS:
            body = b"[]" if action == "load" else b""
            async with http.request(method, f"/_fakeapi/{action}", data=body, ssl=tls) as answer:
                found[action] = answer.status
    return found


def options(**others: Any) -> dict[str, Any]:
    return {"tls": True, "token": "admins", "tokens": TOKENS, **others}


@pytest.mark.parametrize("token", ["", "nobodys"])
async def test_without_credentials_every_endpoint_is_refused(token: str) -> None:
    async with FakeCluster(**options()) as cluster:
        assert set((await statuses(cluster, token)).values()) == {401}


async def test_without_rbac_every_authenticated_user_manages_the_cluster() -> None:
    async with FakeCluster(**options()) as cluster:
        found = await statuses(cluster, "janes")
        assert found.pop("no-such-action") == 404
        assert set(found.values()) == {200}


async def test_with_rbac_a_user_needs_the_right_to_each_path() -> None:
    async with FakeCluster(**options(rbac=True)) as cluster:
        cluster.load(READER)
        for token in ("", "janes"):
            assert set((await statuses(cluster, token)).values()) == {403}
        found = await statuses(cluster, "readers")
        assert found.pop("export") == 200
        assert set(found.values()) == {403}
        assert (await statuses(cluster, "admins"))["export"] == 200
