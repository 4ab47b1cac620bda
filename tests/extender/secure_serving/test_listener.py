"""Listeners: limits with real clients on a clock that only the tests advance, and authorization."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pytest

from extender.config.component_config import ConnectionLimits
from extender.secure_serving.connection_limits import Phase
from extender.secure_serving.listener import ClientCertAuthorizer, certificate_names
from extender.secure_serving.self_signed import CertificateAuthority
from tests.extender.secure_serving.conftest import TlsFiles
from tests.extender.secure_serving.raw_clients import (
    FILTER,
    GET,
    Client,
    RunningListener,
    post,
    run_listener,
    wait_until,
)

TIMEOUT_SECONDS: Final = 20
LIMITS = ConnectionLimits(
    connections=2, header_kib=1, header_seconds=10, body_seconds=30, idle_seconds=120
)


class TestSlowClients:
    async def test_a_slow_header_is_cut_off(self) -> None:
        async with run_listener(LIMITS) as server:
            client = await server.connect()
            await client.send(b"POST /filter HTTP/1.1\r\n")
            await server.wait_for_phase(Phase.HEADER)
            server.advance(6)
            await client.send(b"X-Slow: 1\r\n")
            server.advance(5)
            assert await client.ended()
            assert server.connections.aborted[Phase.HEADER] == 1

    async def test_a_slow_body_is_cut_off_and_other_calls_are_served(self) -> None:
        async with run_listener(LIMITS) as server:
            client = await server.connect()
            await client.send(FILTER[:-10])
            await server.wait_for_phase(Phase.BODY)
            server.advance(29)
            await client.send(FILTER[-10:-8])
            server.advance(2)
            assert await client.ended()
            assert server.connections.aborted[Phase.BODY] == 1
            other = await server.connect()
            assert "200 OK" in await other.call(FILTER)

    async def test_an_idle_connection_is_closed(self) -> None:
        async with run_listener(LIMITS) as server:
            client = await server.connect()
            for _ in range(3):
                assert "200 OK" in await client.call(FILTER)
                server.advance(119)
            server.advance(2)
            assert await client.ended()
            assert server.connections.aborted[Phase.IDLE] == 1

    @pytest.mark.parametrize("data", [b"", b"\x16\x03\x01"], ids=["silent", "slow"])
    async def test_a_handshake_that_is_not_finished_is_cut_off(
        self, files: TlsFiles, data: bytes
    ) -> None:
        async with run_listener(LIMITS, tls=files.tls) as server:
            client = await server.connect()
            await client.send(data)
            await server.wait_for_connections(1)
            server.advance(11)
            assert await client.ended()
            await server.wait_for_connections(0)
            assert server.connections.aborted[Phase.HANDSHAKE] == 1


async def fill(server: RunningListener, tls: ssl.SSLContext | None = None) -> None:
    """Start as many calls as there may be connections."""
    for number in (1, 2):
        await (await server.connect(tls)).send(FILTER[:-1])
        await server.wait_for_connections(number)
    await server.wait_for_phase(Phase.BODY)


class TestLimits:
    async def test_the_longest_idle_connection_is_closed(self) -> None:
        async with run_listener(LIMITS) as server:
            first = await server.connect()
            await server.wait_for_connections(1)
            server.advance(1)
            second = await server.connect()
            await server.wait_for_connections(2)
            third = await server.connect()
            assert await first.ended()
            for client in (second, third):
                assert "200 OK" in await client.call(FILTER)
            assert (server.connections.at_limit, len(server.connections)) == (1, 2)

    async def test_active_connections_stay_and_the_next_is_refused(self) -> None:
        async with run_listener(LIMITS) as server:
            await fill(server)
            third = await server.connect()
            answer = await third.call(FILTER)
            assert answer.startswith("HTTP/1.1 503 ")
            assert "\r\nRetry-After: 1\r\n" in answer
            assert "\r\nConnection: close\r\n" in answer
            assert answer.endswith("reprieve: overloaded: there are too many connections\n")
            assert await third.ended()
            for client in server.clients[:2]:
                assert "200 OK" in await client.call(FILTER[-1:])

    async def test_a_connection_over_tls_is_refused_too(self, files: TlsFiles) -> None:
        async with run_listener(LIMITS, tls=files.tls) as server:
            await fill(server, files.client())
            third = await server.connect(files.client())
            assert "503 Service Unavailable" in await third.call(FILTER)

    async def test_a_refused_call_needs_no_whole_body(self) -> None:
        async with run_listener(LIMITS) as server:
            await fill(server)
            third = await server.connect()
            await third.send(FILTER[:-1])
            assert "503 Service Unavailable" in await third.answer()
            await third.send(FILTER[-1:])
            assert await third.ended()

    async def test_probes_are_answered_at_the_connection_limit(self) -> None:
        async with run_listener(LIMITS) as server:
            await fill(server)
            probe = await server.connect()
            assert "200 OK" in await probe.call(GET % b"/livez")

    async def test_a_late_connection_is_served_if_the_limit_allows_it_by_then(self) -> None:
        async with run_listener(LIMITS) as server:
            await fill(server)
            third = await server.connect()
            await server.wait_for_connections(3)
            server.clients[0].close()
            await server.wait_for_connections(2)
            for _ in range(2):
                assert "200 OK" in await third.call(FILTER)

    async def test_a_connection_that_may_be_sending_is_not_closed(self) -> None:
        async with run_listener(LIMITS) as server:
            for number in (1, 2, 3):
                await server.connect()
                await server.wait_for_connections(number)
            for client in server.clients:
                assert "200 OK" in await client.call(FILTER)

    async def test_connections_never_exceed_twice_the_limit(self) -> None:
        async with run_listener(LIMITS) as server:
            for number in (1, 2, 3, 4):
                await (await server.connect()).send(FILTER[:-1] if number < 3 else b"")
                await server.wait_for_connections(number)
            fifth = await server.connect()
            assert await server.clients[2].ended()
            assert "503 Service Unavailable" in await fifth.call(FILTER)

    async def test_a_connection_beyond_the_hard_limit_is_closed(self) -> None:
        async with run_listener(LIMITS) as server:
            found = [
                server.connections.register(asyncio.BaseTransport(), Phase.DECIDING)
                for _ in range(5)
            ]
            assert [each is None for each in found] == [False] * 4 + [True]
            for each in filter(None, found):
                server.connections.remove(each)

    @pytest.mark.parametrize(
        "lines",
        [b"X-Long: %s\r\n" % (b"x" * 1100), b"".join(b"X-%d: 1\r\n" % n for n in range(100))],
        ids=["long", "many"],
    )
    async def test_headers_over_the_limits_are_refused(self, lines: bytes) -> None:
        async with run_listener(LIMITS) as server:
            client = await server.connect()
            answer = await client.call(b"GET /livez HTTP/1.1\r\nHost: x\r\n%s\r\n" % lines)
            assert "400 Bad Request" in answer


class TestTls:
    async def test_a_new_certificate_is_for_new_connections_and_ends_none(
        self, files: TlsFiles
    ) -> None:
        async with run_listener(tls=files.tls) as server:
            assert server.listener.url.startswith("https://127.0.0.1:")
            before = await server.connect(files.client())
            assert "200 OK" in await before.call(GET % b"/livez")
            files.mount("second", files.issue())
            assert server.reloader is not None
            server.reloader.reload()
            after = await server.connect(files.client())
            assert "200 OK" in await after.call(GET % b"/livez")
            assert "200 OK" in await before.call(GET % b"/livez")
            shown = [
                each.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                for each in (before, after)
            ]
            assert shown[0] != shown[1]

    async def test_clients_without_a_certificate_may_only_probe(self, files: TlsFiles) -> None:
        authorizer = ClientCertAuthorizer(["system:kube-scheduler"])
        async with run_listener(tls=files.mutual, authorizer=authorizer) as server:
            probe = await server.connect(files.client())
            assert "200 OK" in await probe.call(GET % b"/readyz")
            assert "a client certificate is required" in await probe.call(FILTER)
            other = await server.connect(files.client("other"))
            answer = await other.call(FILTER)
            assert "403 Forbidden" in answer
            assert answer.endswith("reprieve: the client other is not allowed\n")
            scheduler = await server.connect(files.client("system:kube-scheduler"))
            assert "200 OK" in await scheduler.call(FILTER)
            refused = 'reprieve_requests_total{status="403",verb="filter"} 2.0'
            assert refused in await scheduler.call(GET % b"/metrics")

    async def test_a_certificate_of_another_authority_gets_no_handshake(
        self, files: TlsFiles
    ) -> None:
        async with run_listener(tls=files.mutual) as server:
            forged = files.client("system:kube-scheduler", CertificateAuthority())
            client = await server.connect(forged)
            assert await client.call(FILTER) == ""
            await server.wait_for_connections(0)

    async def test_old_versions_of_tls_are_refused(self, files: TlsFiles) -> None:
        old = files.client()
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        async with run_listener(tls=files.tls) as server:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await server.connect(old)
            await server.wait_for_connections(0)

    async def test_plain_http_to_a_tls_listener_ends_the_connection(self, files: TlsFiles) -> None:
        async with run_listener(tls=files.tls) as server:
            client = await server.connect()
            await client.send(GET % b"/livez")
            await client.reader.read()
            await server.wait_for_connections(0)


async def test_shutdown_finishes_answers_and_accepts_no_connection() -> None:
    async with run_listener() as server:
        client = await server.connect()
        await client.send(FILTER[:-1])
        await server.wait_for_phase(Phase.BODY)
        finishing = asyncio.create_task(server.listener.finish())
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(ConnectionError):
            await server.connect()
        assert "200 OK" in await client.call(FILTER[-1:])
        await finishing
        assert await client.ended()


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_during_shutdown_is_not_left_waiting(turns: int) -> None:
    """Answer or refuse it: an unanswered caller would wait for its deadline."""
    async with run_listener() as server:
        coming = socket.create_connection(("127.0.0.1", server.port))
        for _ in range(turns):
            await asyncio.sleep(0)
        finishing = asyncio.create_task(server.listener.finish())
        client = Client(*await asyncio.open_connection(sock=coming))
        async with asyncio.timeout(TIMEOUT_SECONDS):
            with suppress(ConnectionError):
                await client.send(FILTER)
            answer = await client.answer()
            await finishing
        assert answer == "" or "200 OK" in answer
        client.close()


# Authorization by the names in a client certificate


def a_certificate(common: str = "", *, others: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return a peer certificate as Python's ssl module represents it."""
    subject = ((("commonName", common),),) if common else ()
    return {
        "subject": ((("organizationName", "system:masters"),), *subject),
        "subjectAltName": tuple(others),
    }


SCHEDULER = a_certificate("system:kube-scheduler")
UNNAMED = a_certificate()
BY_DNS = a_certificate(others=[("DNS", "scheduler.example.com"), ("IP Address", "10.0.0.1")])
BY_URI = a_certificate("x", others=[("URI", "spiffe://example.com/scheduler")])

CASES: list[tuple[tuple[str, ...], str, dict[str, Any] | None, str]] = [
    ((), "/filter", None, "a client certificate is required"),
    ((), "/filter", {}, "a client certificate is required"),
    ((), "/metrics", None, "a client certificate is required"),
    ((), "/decisions", None, "a client certificate is required"),
    ((), "/livez/", None, "a client certificate is required"),
    ((), "/livez", None, ""),
    ((), "/readyz", None, ""),
    (("other",), "/healthz", None, ""),
    ((), "/filter", SCHEDULER, ""),
    ((), "/filter", UNNAMED, ""),
    (("system:kube-scheduler",), "/preempt", SCHEDULER, ""),
    (("kube-scheduler",), "/preempt", SCHEDULER, "the client system:kube-scheduler is not allowed"),
    (("system:masters",), "/preempt", SCHEDULER, "the client system:kube-scheduler is not allowed"),
    (("any",), "/preempt", UNNAMED, "the client without a name is not allowed"),
    (("scheduler.example.com",), "/filter", BY_DNS, ""),
    (("10.0.0.1",), "/filter", BY_DNS, "the client scheduler.example.com is not allowed"),
    (("spiffe://example.com/scheduler",), "/filter", BY_URI, ""),
]


@pytest.mark.parametrize(("allowed", "path", "certificate", "objection"), CASES)
def test_clients_access_the_paths_of_their_certificates(
    allowed: tuple[str, ...], path: str, certificate: dict[str, Any] | None, objection: str
) -> None:
    assert ClientCertAuthorizer(allowed).denial_reason(path, certificate) == objection


def test_names_are_the_common_name_dns_names_and_uris() -> None:
    assert list(certificate_names(BY_URI)) == ["x", "spiffe://example.com/scheduler"]
    assert list(certificate_names(BY_DNS)) == ["scheduler.example.com"]


MIB: Final = 2**20
SMALL_BUDGET: Final = ConnectionLimits(in_flight_mib=3, header_kib=4096)
BODY: Final = post("/filter", b" " * 2 * MIB)
HEAD: Final = b"POST /filter HTTP/1.1\r\nX: " + b"x" * 2 * MIB


class TestBudgetOfBytes:
    @pytest.mark.parametrize("unfinished", [BODY[:-1], HEAD], ids=["body", "head"])
    async def test_the_largest_unfinished_request_is_refused(self, unfinished: bytes) -> None:
        async with run_listener(SMALL_BUDGET) as server:
            larger, smaller = await server.connect(), await server.connect()
            await larger.send(unfinished)
            await wait_until(lambda: server.connections.in_flight >= len(unfinished))
            await smaller.send(unfinished[: MIB + MIB // 2])
            answer = await larger.answer()
            assert "503 Service Unavailable" in answer
            assert "Retry-After: 1" in answer
            assert answer.endswith("reprieve: overloaded: there are too many bytes of requests\n")
            assert server.connections.refused == 1
            await wait_until(lambda: server.connections.in_flight == MIB + MIB // 2)
            assert "200 OK" in await (await server.connect()).call(FILTER)

    async def test_a_refused_request_is_discarded_and_its_connection_ends(self) -> None:
        async with run_listener(SMALL_BUDGET) as server:
            client = await server.connect()
            sending = asyncio.create_task(client.send(post("/filter", b" " * 40 * MIB)))
            assert "503" in await client.answer()
            await sending
            server.advance(3)
            assert await client.ended()
            assert server.connections.in_flight == 0
            assert server.connections.aborted[Phase.REFUSED] == 1

    async def test_answered_and_departed_requests_are_released(self) -> None:
        async with run_listener(SMALL_BUDGET) as server:
            for _ in range(3):
                staying, leaving = await server.connect(), await server.connect()
                assert "400" in await staying.call(BODY)
                await leaving.send(BODY[:-1])
                leaving.close()
                await leaving.writer.wait_closed()
                await wait_until(lambda: server.connections.in_flight == 0)
            assert server.connections.refused == 0

    async def test_pipelined_requests_count_until_they_are_answered(self) -> None:
        async with run_listener(SMALL_BUDGET) as server:
            client = await server.connect()
            await client.send(FILTER + FILTER + FILTER[:-1])
            assert "200 OK" in await client.answer()
            assert "200 OK" in await client.answer()
            await client.send(FILTER[-1:])
            assert "200 OK" in await client.answer()
            await wait_until(lambda: server.connections.in_flight == 0)


@pytest.mark.parametrize("path", ["/filter", "/nowhere", "/livez"])
async def test_an_unknown_expectation_is_refused_without_repeating_it(path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: secret".encode()
    async with run_listener() as server:
        client = await server.connect()
        answer = await client.call(head + b"\xff\xfe\r\n\r\n")
    assert answer.startswith("HTTP/1.1 417 ")
    assert answer.endswith("reprieve: the header Expect is not known; expected 100-continue\n")
