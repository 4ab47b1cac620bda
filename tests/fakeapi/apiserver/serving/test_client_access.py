"""TLS, client certificates and tokens, used by clients."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from extender.kube.rest.kubeconfig import kubeconfig_endpoint
from extender.kube.rest.resources import NODES
from fakeapi import FakeCluster
from fakeapi.apiserver.serving.client_access import read_admin_credentials
from fakeapi.apiserver.wire.http_messages import User
from tests.builders import manifest

NODE = manifest("Node", "n")
WHOAMI = ("auth", "whoami")


@pytest.fixture
async def secure() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(tls=True) as cluster:
        yield cluster


async def get(url: str, tls: ssl.SSLContext | None = None, token: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{url}/api/v1/nodes", ssl=tls or True, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


async def kubectl(cluster: Any, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    program = str(Path(sys.executable).with_name("kubectl"))
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        env={
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig_path),
            "KUBECACHEDIR": str(tmp_path),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_the_client_of_a_secure_cluster_is_authenticated(secure: FakeCluster) -> None:
    secure.load([NODE])
    assert secure.url.startswith("https://127.0.0.1:")
    assert len((await secure.client.list(NODES, bytes)).items) == 1


async def test_the_kubeconfig_carries_all_that_a_client_needs(secure: FakeCluster) -> None:
    endpoint = await kubeconfig_endpoint(secure.kubeconfig_path, None, {})
    assert endpoint.tls is not None
    assert (await get(secure.url, endpoint.tls))[0] == 200
    assert secure.kubeconfig_path.stat().st_mode & 0o077 == 0


async def test_the_kubeconfigs_client_key_is_rsa_in_pkcs_1_as_java_reads_it(
    secure: FakeCluster,
) -> None:
    [user] = orjson.loads(secure.kubeconfig_path.read_bytes())["users"]
    key = b64decode(user["user"]["client-key-data"])
    assert key.startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")


async def test_a_kubeconfig_for_plain_http_skips_verification(cluster: FakeCluster) -> None:
    [entry] = orjson.loads(cluster.kubeconfig_path.read_bytes())["clusters"]
    assert entry["cluster"] == {"server": cluster.url, "insecure-skip-tls-verify": True}


async def test_requests_without_credentials_are_refused(secure: FakeCluster) -> None:
    trusting = read_admin_credentials(secure.kubeconfig_path).tls
    assert trusting is not None
    without_certificate = ssl.create_default_context(
        cadata=ssl.DER_cert_to_PEM_cert(trusting.get_ca_certs(binary_form=True)[0])
    )
    status, refusal = await get(secure.url, without_certificate)
    assert (status, refusal["reason"]) == (401, "Unauthorized")


async def test_a_client_certificate_of_another_authority_is_refused(secure: FakeCluster) -> None:
    async with FakeCluster(tls=True) as other:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(secure.url, read_admin_credentials(other.kubeconfig_path).tls)


async def test_tokens_are_known_and_others_refused() -> None:
    async with FakeCluster(tls=True, token="secret", tokens={"janes": User("jane")}) as cluster:
        tls = read_admin_credentials(cluster.kubeconfig_path).tls
        tokens = ("secret", "janes", "nope", "")
        assert [(await get(cluster.url, tls, t))[0] for t in tokens] == [200, 200, 401, 401]
        assert (await cluster.client.list(NODES, bytes)).items == []


@pytest.mark.parametrize("options", [{"token": "secret"}, {"tokens": {"janes": User("jane")}}])
def test_tokens_need_tls(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="over TLS only; expected tls"):
        FakeCluster(**options)


async def test_a_fork_accepts_the_same_clients(secure: FakeCluster) -> None:
    secure.load([NODE])
    async with secure.fork() as fork:
        assert (await get(fork.url, read_admin_credentials(secure.kubeconfig_path).tls))[0] == 200


@pytest.mark.parametrize("options", [{"tls": True}, {"tls": True, "token": "secret"}])
async def test_kubectl_whoami_works(options: dict[str, Any], tmp_path: Path) -> None:
    async with FakeCluster(**options) as cluster:
        status, output = await kubectl(
            cluster, tmp_path, *WHOAMI, "-o", "jsonpath={.status.userInfo.username}"
        )
        assert (status, output) == (0, "kubernetes-admin")


async def test_a_certificate_names_its_fingerprint(secure: FakeCluster, tmp_path: Path) -> None:
    _, output = await kubectl(secure, tmp_path, *WHOAMI)
    assert "X509SHA256=" in output
    assert "[system:masters system:authenticated]" in output


def test_a_cluster_in_a_process_supports_tls() -> None:
    with FakeCluster.as_process(tls=True, token="secret") as cluster:
        assert cluster.url.startswith("https:")
        assert cluster.load([NODE]) == 1
        assert [change.type for change in cluster.history("nodes")] == ["ADDED"]


async def test_rbac_is_enforced_on_request() -> None:
    jane = User("jane", groups=("dev",))
    options: dict[str, Any] = {"tls": True, "token": "admin", "tokens": {"janes": jane}}
    async with FakeCluster(**options, rbac=True) as cluster:
        tls = read_admin_credentials(cluster.kubeconfig_path).tls
        statuses = [(await get(cluster.url, tls, t))[0] for t in ("admin", "janes", "")]
        assert statuses == [200, 403, 403]
        _, refusal = await get(cluster.url, tls)
        assert refusal["message"].startswith('nodes is forbidden: User "system:anonymous" cannot')
        async with cluster.fork() as fork:
            assert (await get(fork.url, tls, "janes"))[0] == 403


async def test_an_issued_token_authenticates_its_account(tmp_path: Path) -> None:
    async with FakeCluster(tls=True) as cluster:
        cluster.load([manifest("ServiceAccount", "robot")])
        token = (await kubectl(cluster, tmp_path, "create", "token", "robot"))[1].strip()
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        assert (await get(cluster.url, tls, token))[0] == 200
        async with cluster.fork() as fork:
            assert (await get(fork.url, tls, token))[0] == 200
        assert (await get(cluster.url, tls, token + "x"))[0] == 401
