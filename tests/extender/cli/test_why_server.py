"""``reprieve why`` about a cluster and about a Reprieve page, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from extender.cli.why_server import TokenError, ask_server, read_token
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.transport import TransportError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.why import why_document
from extender.ledger_page.app import PageOptions, build_ui_app
from fakeapi import FakeCluster
from tests.builders import Document, manifest, node_json, pod_json
from tests.builders.ledgers import example_records, shadowed, write_ledger
from tests.commands import reprieve, reprieve_json

TOKEN: Final = "s3cret"
UID: Final = "f2b7"
RECORDS: Final = [shadowed(each, careful=None) for each in example_records()]


def event(name: str, of: str, reason: str, message: str, **fields: Any) -> Document:
    """Build an Event about a pod of namespace default, whose UID is its name."""
    involved = {"kind": "Pod", "namespace": "default", "name": of, "uid": of}
    told = {"reason": reason, "message": message, "lastTimestamp": "2026-01-02T15:04:05Z"}
    return manifest(
        "Event", name, namespace="default", involvedObject=involved, **{**told, **fields}
    )


PREEMPTOR: Final = {"kind": "Pod", "namespace": "default", "name": "urgent", "uid": "urgent"}
PREEMPTED: Final = event(
    "e1", "report", "Preempted", "Preempted by pod urgent on node node-1", related=PREEMPTOR
)
NAMED: Final = event(
    "e2", "report", "NamedAsVictim", "Named as a victim for pod default/urgent (priority 1000)",
)  # fmt: skip
NOMINATED: Final = pod_json(
    "urgent", priority=1000, status={"phase": "Pending", "nominatedNodeName": "node-1"}
)
DISRUPTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "default-scheduler: preempting to accommodate a higher priority pod",
    "lastTransitionTime": "2026-01-02T15:04:04Z",
}
VICTIM: Final = pod_json(
    "report", on="node-1", priority=100, status={"phase": "Running", "conditions": [DISRUPTED]}
)


@asynccontextmanager
async def cluster_with(*objects: Document) -> AsyncIterator[FakeCluster]:
    async with FakeCluster(run="none") as cluster:
        cluster.load([node_json("node-1"), *objects])
        yield cluster


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[str]:
    """Serve the page of a ledger, and return its URL."""
    path = await write_ledger(tmp_path / "ledger.db", *RECORDS)
    database = await open_database(path, Access.READ)
    app = build_ui_app(Ledger(database), PageOptions(TOKEN), SystemClock())
    async with TestServer(app) as server:
        yield str(server.make_url("/ui"))
    await database.close()


@asynccontextmanager
async def answering(status: int, body: str) -> AsyncIterator[str]:
    """Serve the same answer to every request."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/")).rstrip("/")


async def evidence(objects: Sequence[Document], key: str) -> dict[str, list[str]]:
    """Return the texts that a cluster shows about a pod by topic."""
    async with cluster_with(*objects) as cluster:
        found = await ask_server(cluster.url, "", key, "")
    assert found is not None
    texts: dict[str, list[str]] = {}
    for line in found["account"]:  # type: ignore[typeddict-item]
        texts.setdefault(line["topic"], []).append(line["text"])
    return texts


@pytest.mark.parametrize(
    ("objects", "key", "shown"),
    [
        (
            [VICTIM, PREEMPTED],
            "default/report",
            {
                "pod": ["exists, Running, on node-1, priority 100"],
                "disrupted": [
                    f"PreemptionByScheduler at 2026-01-02T15:04:04Z: {DISRUPTED['message']}",
                ],
                "preempted": ["2026-01-02T15:04:05Z on node-1 for default/urgent (UID urgent)"],
            },
        ),
        (
            [NAMED],
            "default/report",
            {
                "pod": ["does not exist now"],
                "event": [
                    f"2026-01-02T15:04:05Z NamedAsVictim: {NAMED['message']}",
                ],
            },
        ),
        (
            [{**PREEMPTED, "related": None}],
            "default/report",
            {
                "pod": ["does not exist now"],
                "preempted": ["2026-01-02T15:04:05Z on node-1 for the pod with UID urgent"],
            },
        ),
        (
            [NOMINATED, PREEMPTED],
            "default/urgent",
            {
                "pod": ["exists, Pending, not bound to a node, priority 1000"],
                "node": ["nominated to node-1, where victims make room"],
                "victim": ["2026-01-02T15:04:05Z default/report on node-1"],
            },
        ),
        (
            [PREEMPTED],
            "default/urgent",
            {
                "pod": ["does not exist now"],
                "victim": ["2026-01-02T15:04:05Z default/report on node-1"],
            },
        ),
        (
            [pod_json("calm", on="node-1", priority=1)],
            "default/calm",
            {
                "pod": ["exists, Running, on node-1, priority 1"],
                "preempted": ["no Event about a preemption is left"],
            },
        ),
    ],
)
async def test_a_cluster_shows_the_pod_and_its_events(
    objects: Sequence[Document], key: str, shown: dict[str, list[str]]
) -> None:
    assert await evidence(objects, key) == shown


@pytest.mark.parametrize(("uid", "is_known"), [("", True), ("report", True), ("other", False)])
async def test_a_uid_selects_the_events_of_one_pod(uid: str, is_known: bool) -> None:  # noqa: FBT001
    async with cluster_with(VICTIM, PREEMPTED) as cluster:
        found = await ask_server(cluster.url, "", "default/report", uid)
    assert (found is not None) is is_known


async def test_the_command_says_what_the_cluster_cannot_show() -> None:
    async with cluster_with(VICTIM, PREEMPTED) as cluster:
        kubeconfig = str(cluster.kubeconfig_path)
        done = await reprieve("why", "default/report", "--kubeconfig", kubeconfig)
        never = await reprieve("why", "default/no", "--kubeconfig", kubeconfig)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == f"default/report: what {cluster.url} shows"
    assert "not shown: the other candidates and their values" in done.out
    assert "a ledger keeps all of it: reprieve serve --ledger FILE" in done.out
    line = "default/no: no preemption of or for this pod is known to the cluster"
    assert (never.code, never.err) == (1, f"reprieve: {line}\n")


async def test_a_page_has_the_records_of_a_pod(tmp_path: Path, page: str) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    found = await reprieve_json(
        "why", "default/report", "--server", page, "--token-file", str(token)
    )
    document = why_document("default/report", "", RECORDS)
    assert found == msgspec.json.decode(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("token", "key", "problem"),
    [
        ("", "default/report", "401 Unauthorized: .* expected the token in --token-file or"),
        ("wrong", "default/report", "401 Unauthorized: .* expected the token in --token-file or"),
        (TOKEN, "default/no", "404 Not Found: the ledger has no decision that names the pod"),
        (TOKEN, "default/A B", "400 Bad Request: "),
    ],
)
async def test_an_error_of_a_page_is_one_line(
    token: str, key: str, problem: str, page: str
) -> None:
    with pytest.raises(ApiError, match=problem) as raised:
        await ask_server(page, token, key, "")
    assert len(str(raised.value).splitlines()) == 1


async def test_the_command_fails_if_a_page_refuses_its_token(page: str) -> None:
    done = await reprieve("why", "default/report", "--server", page)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, '{"records": [{"entry": 1}]}', "a page of another version"),
        (200, '{"records": null}', "not a pod"),
        (200, "<html>", "not a pod"),
        (404, "nothing here", "neither a page of Reprieve nor an API server"),
    ],
)
async def test_other_servers_are_one_error(status: int, body: str, problem: str) -> None:
    async with answering(status, body) as url:
        with pytest.raises(MalformedError, match=problem):
            await ask_server(url, "", "default/report", "")


async def test_a_server_that_is_away_is_one_line() -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    with pytest.raises(TransportError):
        await ask_server(url, "", "default/report", "")
    done = await reprieve("why", "default/report", "--server", url)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert url in done.err


async def test_a_server_that_denies_access_is_one_line() -> None:
    async with answering(403, "Forbidden") as url:
        with pytest.raises(ApiError, match="403 Forbidden"):
            await ask_server(url, TOKEN, "default/report", "")
        done = await reprieve("why", "default/report", "--server", url)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)


@pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff", "\u00e9".encode()])
def test_a_file_without_a_token_is_an_error(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TokenError, match=r"--token-file .*: (cannot be read|expected one token)"):
        read_token(path)


def test_the_environment_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRIEVE_TOKEN", f"{TOKEN}\n")
    assert read_token(None) == TOKEN
