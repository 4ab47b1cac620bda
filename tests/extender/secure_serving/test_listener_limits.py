"""The socket with real clients, good ones and bad ones, on a clock that only the tests move."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final

import pytest

from extender.config.component_config import ConnectionLimits
from extender.kube.rest.clock import SystemClock
from extender.secure_serving.connection_limits import Phase
from extender.secure_serving.dynamic_certificates import CertificateReloader
from extender.secure_serving.listener import ClientCertAuthorizer
from extender.secure_serving.self_signed import CertificateAuthority
from tests.extender.secure_serving.conftest import Papers
from tests.extender.secure_serving.raw_clients import ASKING, GET, Client, Door, open_door

PATIENCE_SECONDS: Final = 20
LIMITS = ConnectionLimits(
    connections=2, header_kib=1, header_seconds=10, body_seconds=30, idle_seconds=120
)


class TestSlowClients:
    async def test_a_header_that_trickles_in_is_cut_off(self) -> None:
        async with open_door(LIMITS) as door:
            client = await door.knock()
            await client.send(b"POST /filter HTTP/1.1\r\n")
            await door.until_all(Phase.HEADER)
            door.pass_by(6)
            await client.send(b"X-Slow: 1\r\n")
            door.pass_by(5)
            assert await client.ended()
            assert door.visits.aborted[Phase.HEADER] == 1

    async def test_a_body_that_trickles_in_is_cut_off_and_nothing_breaks(self) -> None:
        async with open_door(LIMITS) as door:
            client = await door.knock()
            await client.send(ASKING[:-10])
            await door.until_all(Phase.BODY)
            door.pass_by(29)
            await client.send(ASKING[-10:-8])
            door.pass_by(2)
            assert await client.ended()
            assert door.visits.aborted[Phase.BODY] == 1
            other = await door.knock()
            await other.send(ASKING)
            assert "200 OK" in await other.answer()

    async def test_an_idle_connection_is_closed_in_the_end(self) -> None:
        async with open_door(LIMITS) as door:
            client = await door.knock()
            for _ in range(3):
                await client.send(ASKING)
                assert "200 OK" in await client.answer()
                door.pass_by(119)
            door.pass_by(2)
            assert await client.ended()
            assert door.visits.aborted[Phase.IDLE] == 1

    @pytest.mark.parametrize("data", [b"", b"\x16\x03\x01"], ids=["silent", "slow"])
    async def test_a_handshake_that_is_not_finished_is_cut_off(
        self, papers: Papers, data: bytes
    ) -> None:
        rotation = CertificateReloader(papers.tls, SystemClock())
        async with open_door(LIMITS, lambda: rotation.context) as door:
            client = await door.knock()
            await client.send(data)
            await door.until(1)
            door.pass_by(11)
            assert await client.ended()
            await door.until(0)
            assert door.visits.aborted[Phase.HANDSHAKE] == 1


async def fill(door: Door, tls: ssl.SSLContext | None = None) -> None:
    """Have as many calls under way as there may be connections."""
    for number in (1, 2):
        await (await door.knock(tls)).send(ASKING[:-1])
        await door.until(number)
    await door.until_all(Phase.BODY)


class TestTooMuch:
    async def test_the_longest_idle_connection_is_closed(self) -> None:
        async with open_door(LIMITS) as door:
            first = await door.knock()
            await door.until(1)
            door.pass_by(1)
            second = await door.knock()
            await door.until(2)
            third = await door.knock()
            assert await first.ended()
            for client in (second, third):
                await client.send(ASKING)
                assert "200 OK" in await client.answer()
            assert (door.visits.at_limit, len(door.visits)) == (1, 2)

    async def test_active_connections_stay_and_the_next_is_refused(self) -> None:
        async with open_door(LIMITS) as door:
            await fill(door)
            third = await door.knock()
            await third.send(ASKING)
            answer = await third.answer()
            assert answer.startswith("HTTP/1.1 503 ")
            assert "\r\nRetry-After: 1\r\n" in answer
            assert "\r\nConnection: close\r\n" in answer
            assert answer.endswith("reprieve: overloaded: there are too many connections\n")
            assert await third.ended()
            for client in door.clients[:2]:
                await client.send(ASKING[-1:])
                assert "200 OK" in await client.answer()

    async def test_it_is_refused_over_tls_too(self, papers: Papers) -> None:
        rotation = CertificateReloader(papers.tls, SystemClock())
        async with open_door(LIMITS, lambda: rotation.context) as door:
            await fill(door, papers.client())
            third = await door.knock(papers.client())
            await third.send(ASKING)
            assert "503 Service Unavailable" in await third.answer()

    async def test_the_next_is_refused_without_reading_its_body(self) -> None:
        async with open_door(LIMITS) as door:
            await fill(door)
            third = await door.knock()
            await third.send(ASKING[:-1])
            assert "503 Service Unavailable" in await third.answer()
            await third.send(ASKING[-1:])
            assert await third.ended()

    async def test_probes_are_answered_at_the_connection_limit(self) -> None:
        async with open_door(LIMITS) as door:
            await fill(door)
            probe = await door.knock()
            assert "200 OK" in await said(probe, b"/livez")

    async def test_a_late_connection_is_served_if_the_limit_allows_it_by_then(self) -> None:
        async with open_door(LIMITS) as door:
            await fill(door)
            third = await door.knock()
            await door.until(3)
            door.clients[0].close()
            await door.until(2)
            for _ in range(2):
                await third.send(ASKING)
                assert "200 OK" in await third.answer()

    async def test_a_connection_that_may_be_sending_is_not_closed(self) -> None:
        async with open_door(LIMITS) as door:
            for number in (1, 2, 3):
                await door.knock()
                await door.until(number)
            for client in door.clients:
                await client.send(ASKING)
                assert "200 OK" in await client.answer()

    async def test_there_are_no_more_than_twice_as_many(self) -> None:
        async with open_door(LIMITS) as door:
            for number in (1, 2, 3, 4):
                await (await door.knock()).send(ASKING[:-1] if number < 3 else b"")
                await door.until(number)
            fifth = await door.knock()
            assert await door.clients[2].ended()
            await fifth.send(ASKING)
            assert "503 Service Unavailable" in await fifth.answer()

    async def test_a_connection_beyond_the_hard_limit_is_closed(self) -> None:
        async with open_door(LIMITS) as door:
            visits = [
                door.visits.register(asyncio.BaseTransport(), Phase.DECIDING) for _ in range(5)
            ]
            assert [visit is None for visit in visits] == [False] * 4 + [True]
            for visit in filter(None, visits):
                door.visits.remove(visit)

    async def test_a_header_over_the_limit_is_refused(self) -> None:
        async with open_door(LIMITS) as door:
            client = await door.knock()
            await client.send(
                b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n" % (b"x" * 1100)
            )
            assert "400 Bad Request" in await client.answer()

    async def test_too_many_headers_are_refused(self) -> None:
        async with open_door(LIMITS) as door:
            client = await door.knock()
            lines = b"".join(b"X-%d: 1\r\n" % number for number in range(100))
            await client.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n%s\r\n" % lines)
            assert "400 Bad Request" in await client.answer()


async def said(client: Client, path: bytes) -> str:
    await client.send(GET % path)
    return await client.answer()


class TestTls:
    async def test_a_rotation_changes_what_new_connections_are_shown_and_ends_none(
        self, papers: Papers
    ) -> None:
        rotation = CertificateReloader(papers.tls, SystemClock())
        async with open_door(context=lambda: rotation.context) as door:
            assert door.socket.url.startswith("https://127.0.0.1:")
            before = await door.knock(papers.client())
            assert "200 OK" in await said(before, b"/livez")
            papers.mount("second", papers.issue())
            rotation.reload()
            after = await door.knock(papers.client())
            assert "200 OK" in await said(after, b"/livez")
            assert "200 OK" in await said(before, b"/livez")
            shown = [
                each.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                for each in (before, after)
            ]
            assert shown[0] != shown[1]

    async def test_clients_without_a_certificate_may_probe_and_nothing_else(
        self, papers: Papers
    ) -> None:
        rotation = CertificateReloader(papers.mutual, SystemClock())
        keeper = ClientCertAuthorizer(["system:kube-scheduler"])
        async with open_door(context=lambda: rotation.context, doorkeeper=keeper) as door:
            probe = await door.knock(papers.client())
            assert "200 OK" in await said(probe, b"/readyz")
            await probe.send(ASKING)
            assert "a client certificate is required" in await probe.answer()
            stranger = await door.knock(papers.client("somebody"))
            await stranger.send(ASKING)
            answer = await stranger.answer()
            assert "403 Forbidden" in answer
            assert answer.endswith("reprieve: the client somebody is not allowed\n")
            scheduler = await door.knock(papers.client("system:kube-scheduler"))
            await scheduler.send(ASKING)
            assert "200 OK" in await scheduler.answer()

    async def test_a_certificate_of_another_authority_gets_no_handshake(
        self, papers: Papers
    ) -> None:
        rotation = CertificateReloader(papers.mutual, SystemClock())
        async with open_door(context=lambda: rotation.context) as door:
            forged = papers.client("system:kube-scheduler", CertificateAuthority())
            client = await door.knock(forged)
            await client.send(ASKING)
            assert await client.answer() == ""
            await door.until(0)

    async def test_old_versions_of_tls_are_not_spoken(self, papers: Papers) -> None:
        rotation = CertificateReloader(papers.tls, SystemClock())
        old = papers.client()
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        async with open_door(context=lambda: rotation.context) as door:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await door.knock(old)
            await door.until(0)

    async def test_plain_words_to_a_secured_socket_end_the_connection(self, papers: Papers) -> None:
        rotation = CertificateReloader(papers.tls, SystemClock())
        async with open_door(context=lambda: rotation.context) as door:
            client = await door.knock()
            await client.send(GET % b"/livez")
            await client.reader.read()
            await door.until(0)


async def test_shutdown_finishes_answers_and_accepts_no_connection() -> None:
    async with open_door() as door:
        client = await door.knock()
        await client.send(ASKING[:-1])
        await door.until_all(Phase.BODY)
        finishing = asyncio.create_task(door.socket.finish())
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(ConnectionError):
            await door.knock()
        await client.send(ASKING[-1:])
        assert "200 OK" in await client.answer()
        await finishing
        assert await client.ended()


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_during_shutdown_is_not_left_waiting(turns: int) -> None:
    """It is answered or refused: an unanswered caller would wait for its deadline."""
    async with open_door() as door:
        coming = socket.create_connection(("127.0.0.1", door.port))
        for _ in range(turns):
            await asyncio.sleep(0)
        finishing = asyncio.create_task(door.socket.finish())
        client = Client(*await asyncio.open_connection(sock=coming))
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                await client.send(ASKING)
            answer = await client.answer()
            await finishing
        assert answer == "" or "200 OK" in answer
        client.close()
