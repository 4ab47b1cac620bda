"""Webhooks over HTTPS, of services, and registered by a client."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client.exceptions import ApiException

from extender.secure_serving.self_signed import CertificateAuthority
from fakeapi import FakeCluster, VirtualCluster
from tests.builders import manifest
from tests.fakeapi.admission_webhooks import (
    Review,
    add,
    answered,
    answering,
    configuration,
    patching,
    webhook,
)
from tests.fakeapi.api_requests import MAPS, NAME, ask, named
from tests.fakeapi.webhook_server import replying, serving

SERVICE = {"namespace": "tools", "name": "labeller", "path": "/label"}
LABELLED = answering(warnings=["labelled"], **patching(add("/metadata/labels", {"seen": "yes"})))


Post = Callable[..., Awaitable[tuple[int, Any, list[str]]]]


@pytest.fixture
async def post(cluster: FakeCluster) -> AsyncIterator[Post]:
    """Return a function that creates a config map with a webhook of some fields.

    It returns the status, the body and the warnings.
    """
    async with aiohttp.ClientSession(cluster.url) as session:

        async def create(**fields: Any) -> tuple[int, Any, list[str]]:
            cluster.load([configuration("mutating", webhook(NAME, **fields))])
            async with session.post(MAPS, json=named("m")) as answer:
                return answer.status, await answer.json(), answer.headers.getall("Warning", [])

        yield create


class TestOverHttps:
    async def test_a_webhook_is_called_at_its_path_and_may_patch_and_warn(self, post: Post) -> None:
        seen = []

        async def handler(request: web.Request) -> web.Response:
            seen.append((request.method, request.path_qs, request.content_type))
            return web.json_response(LABELLED(await request.json()))

        async with serving(handler) as server:
            fields = {"clientConfig": server.client("/label"), "timeoutSeconds": 3}
            status, made, warnings = await post(**fields)
        assert (status, made["metadata"]["labels"]) == (201, {"seen": "yes"})
        assert warnings == ['299 - "labelled"']
        assert seen == [("POST", "/label?timeout=3s", "application/json")]

    async def test_a_denial_is_returned_with_its_warnings(self, post: Post) -> None:
        refused = answering(allowed=False, warnings=["beware"], status={"message": "no"})
        async with serving(replying(refused)) as server:
            status, body, warnings = await post(clientConfig=server.client())
        assert (status, warnings) == (400, ['299 - "beware"'])
        assert body["message"] == f'admission webhook "{NAME}" denied the request: no'

    @pytest.mark.parametrize(
        ("code", "text", "error"),
        [
            (404, "nothing here", "the server could not find the requested resource"),
            (
                500,
                "it broke",
                'an error on the server (\\"it broke\\") has prevented the request from succeeding',
            ),
            (503, "", "the server is currently unable to handle the request"),
            (403, "not you", "not you"),
            (418, "", "the server responded with the status code 418 but did not return more"),
            (302, "", "the server responded with the status code 302 but did not return more"),
            (422, '{"kind":"Status","message":"so it is"}', "so it is"),
            (200, "yes", "couldn't get version/kind; json parse error: "),
        ],
    )
    async def test_an_answer_that_is_no_review_fails(
        self, post: Post, code: int, text: str, error: str
    ) -> None:
        async def handler(_request: web.Request) -> web.Response:
            return web.Response(status=code, text=text)

        async with serving(handler) as server:
            status, body, _ = await post(clientConfig=server.client())
        assert status == 500
        failed = f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook'
        assert body["message"].startswith(f"{failed}: {error.replace(chr(92), '')}")

    async def test_an_unreachable_webhook_is_an_error(self, post: Post) -> None:
        async with serving(replying(LABELLED)) as server:
            config = server.client()
        status, body, _ = await post(clientConfig=config)
        address = server.url.removeprefix("https://")
        assert status == 500
        assert body["message"] == (
            f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: '
            f'Post "{server.url}/?timeout=10s": dial tcp {address}: connect: connection refused'
        )

    async def test_an_unreachable_webhook_may_be_ignored(self, post: Post) -> None:
        async with serving(replying(LABELLED)) as server:
            config = server.client()
        fields = {"clientConfig": config, "failurePolicy": "Ignore"}
        assert (await post(**fields))[0] == 201

    @pytest.mark.parametrize("bundle", [b"", CertificateAuthority().certificate])
    async def test_an_untrusted_certificate_fails(self, post: Post, bundle: bytes) -> None:
        async with serving(replying(LABELLED)) as server:
            config = {**server.client(), "caBundle": b64encode(bundle).decode()}
            status, body, _ = await post(clientConfig=config)
        assert status == 500
        assert body["message"].endswith(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        )

    async def test_a_certificate_for_another_name_fails(self, post: Post) -> None:
        async with serving(replying(LABELLED), "elsewhere.example.com") as server:
            status, body, _ = await post(clientConfig=server.client())
        assert (status, "tls: failed to verify certificate" in body["message"]) == (500, True)


class TestServices:
    async def create(self, url: str, bundle: str) -> tuple[int, Any]:
        services = {"tools/labeller": url}
        config = {"service": SERVICE, "caBundle": bundle}
        async with FakeCluster(services=services) as cluster:
            cluster.load([configuration("mutating", webhook(NAME, clientConfig=config))])
            async with (
                aiohttp.ClientSession(cluster.url) as session,
                session.post(MAPS, json=named("m")) as answer,
            ):
                return answer.status, await answer.json()

    async def test_a_service_has_a_configured_address_and_its_own_name(self) -> None:
        async with serving(replying(LABELLED), "labeller.tools.svc") as server:
            status, made = await self.create(server.url, server.ca_bundle)
        assert (status, made["metadata"]["labels"]) == (201, {"seen": "yes"})

    async def test_a_certificate_for_the_address_is_not_enough(self) -> None:
        async with serving(replying(LABELLED)) as server:
            status, body = await self.create(server.url, server.ca_bundle)
        assert status == 500
        post = 'Post "https://labeller.tools.svc:443/label?timeout=10s": tls: '
        assert post in body["message"]

    async def test_a_service_with_endpoints(self, cluster: FakeCluster) -> None:
        async with serving(replying(LABELLED), "labeller.tools.svc") as server:
            port = int(server.url.rpartition(":")[2])
            ports = {"ports": [{"port": 443}]}
            subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": port}]}
            config = {"service": SERVICE, "caBundle": server.ca_bundle}
            service = manifest("Service", "labeller", namespace="tools", spec=ports)
            endpoints = manifest("Endpoints", "labeller", namespace="tools", subsets=[subset])
            hook = configuration("mutating", webhook(NAME, clientConfig=config))
            cluster.load([service, endpoints, hook])
            answer = await ask(cluster.local_transport(), "POST", MAPS, named("m"))
        assert answer.body["metadata"]["labels"] == {"seen": "yes"}

    async def test_an_unknown_service_is_an_error(self, cluster: FakeCluster) -> None:
        config = {"service": SERVICE}
        cluster.load([configuration("mutating", webhook(NAME, clientConfig=config))])
        answer = await ask(cluster.local_transport(), "POST", MAPS, named("m"))
        post = 'Post "https://labeller.tools.svc:443/label?timeout=10s": '
        assert answer.body["message"].endswith(f'{post}service "labeller" not found')

    async def test_a_fork_has_the_same_webhooks(self) -> None:
        hooks = {NAME: LABELLED}
        async with VirtualCluster(webhooks=hooks) as cluster:
            cluster.load([configuration("mutating", webhook(NAME))])
            async with cluster.fork() as fork:
                answer = await ask(fork.local_transport(), "POST", MAPS, named("m"))
        assert answer.body["metadata"]["labels"] == {"seen": "yes"}


class TestKubernetesAsyncio:
    async def test_it_registers_webhooks_and_is_denied(self, cluster: FakeCluster) -> None:
        def judge(review: Review) -> Review:
            loud = review["request"]["object"]["data"].get("volume") == "11"
            status = {"code": 403, "reason": "Forbidden", "message": "too loud"}
            return answered(review, allowed=not loud, status=status)

        settings = client.Configuration()
        await config.load_kube_config(str(cluster.kubeconfig_path), client_configuration=settings)
        async with (
            client.ApiClient(settings) as session,
            serving(replying(LABELLED)) as labeller,
            serving(replying(judge)) as judging,
        ):
            registration = client.AdmissionregistrationV1Api(session)
            body: Any = configuration("mutating", webhook(NAME, clientConfig=labeller.client()))
            await registration.create_mutating_webhook_configuration(body)
            body = configuration("validating", webhook(NAME, clientConfig=judging.client()))
            await registration.create_validating_webhook_configuration(body)
            core = client.CoreV1Api(session)
            body = named("m", volume="3")
            made = await core.create_namespaced_config_map("default", body)
            with pytest.raises(ApiException) as refused:
                await core.patch_namespaced_config_map("m", "default", {"data": {"volume": "11"}})
        assert made.metadata.labels == {"seen": "yes"}
        assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
        body = orjson.loads(refused.value.body or b"")
        assert body["message"] == f'admission webhook "{NAME}" denied the request: too loud'
