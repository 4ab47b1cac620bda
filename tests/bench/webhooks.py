"""The cost of WorkloadSpread webhooks: an answer, a create that waits for it, and conflicts.

fakeapi and the webhooks are processes, with HTTPS between them. There are 1,000 WorkloadSpreads
with their targets, and 20,000 pods and 100 nodes in the caches of the webhooks, since one
WorkloadSpread simulates scheduling.

- Pods are created in turns in namespaces with webhook calls and in one without: 50 at a time, of
  one ReplicaSet or each of another WorkloadSpread; and one at a time. The controller counts the
  pods meanwhile. If the subset has a limit, pods that wait to be counted share writes of a status.
- The same with a webhook that only allows: no webhook can cost less.
- Reviews are sent as an API server sends them, one after the other and 50 at a time; each pod is
  put into a subset with a limit, so that each answer waits for the write of a status.
- Two processes are called in turns for one WorkloadSpread, 50 calls at a time.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Final

import aiohttp
import orjson

from fakeapi.http_client import HttpClient
from tests.bench.budgets import Figure, untimed
from tests.bench.servers.processes import Server, approving, processor_seconds, reprieve
from tests.bench.timing import Latency, latency, milliseconds
from tests.bench.workloadspread_cluster import APPROVED, NAMESPACES, PLAIN, SPREADS, objects, pod
from tests.builders import Document

AT_ONCE: Final = 50

_REVIEWS: Final = 1_000
_CREATES: Final = 500
_AFTERMATH_SECONDS: Final = 0.5
_QUIET_SECONDS: Final = 0.1
"""A process that uses less processor time in a second is idle."""
_CONFIGURATION: Final = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/reprieve-workloadspread"
)
_JSON: Final = {"Content-Type": "application/json"}
_CONFLICTS_METRIC: Final = "workloadspread_webhook_conflicts_total "

Where = Callable[[int], tuple[str, str]]
"""Returns the namespace and the owner of a pod."""


def measure(rounds: int) -> dict[str, Figure]:
    """Measure everything; pods are created in so many rounds."""
    with ExitStack() as stack:
        server = stack.enter_context(reprieve("fakeapi", "--port", "0", "--run", "none"))
        stack.enter_context(approving(server.url))

        def hooked() -> Server:
            run = ("--run", "workloadspread", "--webhook-port", "0", "--metrics-port", "0")
            return stack.enter_context(reprieve("controllers", "--server", server.url, *run))

        return asyncio.run(_measure(server, hooked, rounds))


async def _measure(server: Server, hooked: Callable[[], Server], rounds: int) -> dict[str, Figure]:
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        server.url, timeout=timeout, connector=connector, headers=_JSON
    ) as http:
        await _load(http)
        hooks = WebhookProcess(http, hooked())
        await hooks.found()
        create = Creating(server.url)
        await create("adaptive", "spread-0", next(_NUMBERS))  # from now on pods are cached
        figures: dict[str, Figure] = {}
        for name, what, where, at_once in (
            ("set-ratio", "all of one ReplicaSet", _of_one_set, AT_ONCE),
            ("create-ratio", "of many WorkloadSpreads", _anywhere, AT_ONCE),
            ("create-free-ratio", "its subset without a limit", _without_limit, AT_ONCE),
            ("approved-ratio", "a webhook only allows", _approved, AT_ONCE),
            ("create-1-ratio", "of many WorkloadSpreads", _anywhere, 1),
        ):
            await _quiet(server, hooks.server)
            turns = Turns(create, server.pid, at_once)
            figures |= await turns.figures(rounds, name, what, where)
        for at_once in (1, AT_ONCE):  # last, since these pods are rescheduled after half a minute
            figures |= _latencies(at_once, latency(await hooks.reviews(at_once, _anywhere)))
        other = WebhookProcess(http, hooked())
        await other.found()
        figures["conflicts"] = await _conflicts(hooks, other)
        for each in (create, hooks, other):
            await each.close()
        return figures


async def _quiet(*servers: Server) -> None:
    """Wait until servers are idle."""
    begun = 0.0
    while (worked := sum(processor_seconds(each.pid) for each in servers)) > begun + _QUIET_SECONDS:
        begun = worked
        await asyncio.sleep(1)


_NUMBERS: Final = count()


@dataclass
class WebhookProcess:
    """A process with webhooks, and a client that calls it as an API server does."""

    http: aiohttp.ClientSession
    server: Server
    url: str = ""
    session: aiohttp.ClientSession | None = None

    async def found(self) -> None:
        """Wait until it has registered its webhooks, and connect to their address."""
        known = await self._address()
        while known is None or known["url"] in _SEEN:
            known = await self._address()
        _SEEN.add(known["url"])
        self.url = known["url"]
        context = ssl.create_default_context(cadata=b64decode(known["caBundle"]).decode())
        connector = aiohttp.TCPConnector(limit=0, ssl=context)
        self.session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        """Close the connections."""
        if self.session is not None:
            await self.session.close()

    async def reviews(self, at_once: int, where: Where) -> list[float]:
        """Send reviews of pods, and return the seconds of each."""
        taken: list[float] = []

        async def ask(number: int) -> None:
            begun = time.perf_counter()
            assert (await self.review(*where(number), number))["allowed"]
            taken.append(time.perf_counter() - begun)

        await _several(ask, _REVIEWS, at_once)
        return taken

    async def review(self, namespace: str, spread: str, number: int) -> Document:
        """Send the review of a pod, and return the response."""
        request = {
            "uid": str(number),
            "operation": "CREATE",
            "namespace": namespace,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": pod(namespace, spread, number),
        }
        assert self.session is not None
        body = orjson.dumps({"request": request})
        async with self.session.post(self.url, data=body) as answer:
            response: Document = orjson.loads(await answer.read())["response"]
            return response

    async def metric(self, name: str) -> float:
        """Return one of its metrics."""
        url = f"{self.server.url}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            lines = (await answer.text()).splitlines()
        [found] = [line for line in lines if line.startswith(name)]
        return float(found.removeprefix(name))

    async def _address(self) -> Document | None:
        async with self.http.get(_CONFIGURATION) as answer:
            if answer.status == 404:
                return None
            found: Document = (await answer.json())["webhooks"][0]["clientConfig"]
            return found


_SEEN: Final[set[str]] = set()


class Creating:
    """Creates pods on reusable connections."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = HttpClient({})

    async def __call__(self, namespace: str, spread: str, number: int) -> None:
        """Create a pod."""
        body = orjson.dumps(pod(namespace, spread, number))
        path = f"/api/v1/namespaces/{namespace}/pods"
        answer = await self._client.post(f"{self._url}{path}", body)
        assert answer.status == 201, answer.body

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


@dataclass(frozen=True, slots=True)
class Turns:
    """Pods created in turns with and without the webhooks, so many at a time."""

    create: Creating
    pid: int
    at_once: int

    async def figures(
        self, rounds: int, name: str, told: str, asked_at: Where
    ) -> dict[str, Figure]:
        """Create pods, and return the ratios of wall time and of processor time."""
        pairs = [[await self._turn(where) for where in (_unasked, asked_at)] for _ in range(rounds)]
        [bare, asked] = (
            [statistics.median(each) for each in zip(*turns, strict=True)]
            for turns in zip(*pairs, strict=True)
        )
        ratios = [[two / one for one, two in zip(*pair, strict=True)] for pair in pairs]
        [longer, dearer] = (statistics.median(each) for each in zip(*ratios, strict=True))
        what = f"create of a pod, {self.at_once} at a time, {told}, by one without the webhooks"
        shown = f"{asked[0] * 1e3:.1f} ms; without {bare[0] * 1e3:.1f} ms"
        worked = f"{asked[1] * 1e3:.1f} ms; without {bare[1] * 1e3:.1f} ms"
        return {
            name: untimed(what, shown, longer),
            f"{name}-cpu": untimed(f"{what}: fakeapi's processor time", worked, dearer),
        }

    async def _turn(self, where: Where) -> tuple[float, float]:
        """Return the seconds of wall time, and of fakeapi's processor time, for each of many pods.

        The latter includes the requests of the controller until the next turn.
        """

        async def create(number: int) -> None:
            await self.create(*where(number), number)

        worked, begun = processor_seconds(self.pid), time.perf_counter()
        await _several(create, _CREATES, self.at_once)
        taken = time.perf_counter() - begun
        await asyncio.sleep(_AFTERMATH_SECONDS)
        return taken / _CREATES, (processor_seconds(self.pid) - worked) / _CREATES


async def _conflicts(one: WebhookProcess, other: WebhookProcess) -> Figure:
    """Call two processes in turns for one WorkloadSpread."""
    before = [await each.metric(_CONFLICTS_METRIC) for each in (one, other)]
    admitted, refused = 0, 0

    async def ask(number: int) -> None:
        nonlocal admitted, refused
        hooks = one if number % 2 else other
        if (await hooks.review("hot", "spread-0", number))["allowed"]:
            admitted += 1
        else:
            refused += 1

    await _several(ask, _REVIEWS, AT_ONCE)
    after = [await each.metric(_CONFLICTS_METRIC) for each in (one, other)]
    conflicts = (sum(after) - sum(before)) / admitted
    what = f"conflicts per pod, two processes, {AT_ONCE} pods at a time for one WorkloadSpread"
    shown = f"{conflicts:.2f}; {refused} of {_REVIEWS:,} pods refused"
    return untimed(what, shown, conflicts)


async def _several(act: Callable[[int], Awaitable[None]], times: int, at_once: int) -> None:
    """Call ``act`` so often, so many at a time, with a new number each time."""
    left = iter(range(times))

    async def work() -> None:
        for _ in left:
            await act(next(_NUMBERS))

    await asyncio.gather(*(work() for _ in range(at_once)))


def _anywhere(number: int) -> tuple[str, str]:
    """Return the namespace and name of one of the many."""
    chosen = number % SPREADS
    return f"many-{chosen % NAMESPACES}", f"spread-{chosen // NAMESPACES}"


def _of_one_set(_number: int) -> tuple[str, str]:
    return "set", "spread-0"


def _without_limit(_number: int) -> tuple[str, str]:
    return "free", "spread-0"


def _approved(number: int) -> tuple[str, str]:
    return APPROVED, f"spread-{number % 10}"


def _unasked(number: int) -> tuple[str, str]:
    return PLAIN, f"spread-{number % 10}"


def _latencies(at_once: int, taken: Latency) -> dict[str, Figure]:
    what = f"answer about a pod, its subset counted, {at_once} at a time"
    return {
        f"answer-{at_once}": Figure(f"{what}, p50", milliseconds(taken.p50), taken.p50),
        f"answer-{at_once}-p99": Figure(f"{what}, p99", milliseconds(taken.p99), taken.p99),
    }


async def _load(http: aiohttp.ClientSession) -> None:
    body = orjson.dumps(list(objects()))
    async with http.post("/_fakeapi/load", data=body) as answer:
        assert answer.status == 200, await answer.text()
