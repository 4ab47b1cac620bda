"""``reprieve mcp`` in its own process, with the client of the protocol: stdio and HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from fakeapi import FakeCluster
from tests.builders import encoded, node_json, pod_json
from tests.builders.ledgers import example_records, write_ledger
from tests.commands import COMMAND, ROOT, reprieve, reprieve_json, serving, written

TOKEN: Final = "0123456789abcdef"
OBJECTS: Final = (
    node_json(cpu="2"),
    pod_json("web", on="node-1", cpu="1", priority=1),
    pod_json("vip", cpu="2", priority=10),
)
VIP: Final = encoded(pod_json("vip", cpu="2", priority=10)).decode()
ALL_TOOLS: Final = ["why", "list", "explain", "simulate"]


@pytest.fixture
async def ledger(tmp_path: Path) -> str:
    return await write_ledger(tmp_path / "ledger.db", *example_records())


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return written(tmp_path, "cluster.json", *OBJECTS)


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return str(path)


@asynccontextmanager
async def over_stdio(*arguments: str) -> AsyncIterator[Client]:
    """Yield a client of a server on standard input and output, after ``initialize``."""
    command, *program = COMMAND
    server = StdioServerParameters(
        command=command, args=[*program, "mcp", *arguments], env={"PYTHONPATH": str(ROOT)}, cwd=ROOT
    )
    assert sys.__stderr__ is not None
    async with Client(stdio_client(server, sys.__stderr__), mode="legacy") as client:
        yield client


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode="legacy") as client:
            yield client


async def call(client: Client, tool: str, **arguments: object) -> Any:
    """Return the document of a tool, which must have a paragraph as well."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert content.type == "text"
    assert not result.is_error, content.text
    assert content.text
    assert "\n" not in content.text
    return result.structured_content


async def error(client: Client, tool: str, **arguments: object) -> str:
    """Return the error of a tool, which must be one line."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert content.type == "text"
    assert result.is_error
    assert "\n" not in content.text
    return content.text


async def tool_names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def check_tools(client: Client, ledger: str, cluster: str, pod: str) -> None:
    """Compare the document of each tool with that of the command for the same input."""
    of_ledger, of_cluster = ("--ledger", ledger), ("--cluster", cluster)
    preempt = await reprieve_json("explain", "preempt", *of_cluster, "--pod", pod)
    assert await tool_names(client) == ALL_TOOLS
    why = await call(client, "why", pod="default/report")
    assert why == await reprieve_json("why", "default/report", *of_ledger)
    listed = await call(client, "list", limit=2)
    assert listed["decisions"] == await reprieve_json("ledger", "list", *of_ledger)
    assert listed["before"] is None
    assert await call(client, "explain", pod="default/vip") == preempt
    assert await call(client, "simulate", pod_manifest=VIP) == preempt


async def test_tools_over_stdio_return_what_the_commands_print(
    ledger: str, cluster: str, tmp_path: Path
) -> None:
    async with over_stdio("--ledger", ledger, "--cluster", cluster) as client:
        await check_tools(client, ledger, cluster, written(tmp_path, "pod.json", OBJECTS[-1]))


async def test_tools_over_http_return_what_the_commands_print(
    ledger: str, cluster: str, token_file: str, tmp_path: Path
) -> None:
    sources = ("--ledger", ledger, "--cluster", cluster)
    async with (
        serving("mcp", "--http", *sources, "--token-file", token_file) as url,
        over_http(url) as client,
    ):
        await check_tools(client, ledger, cluster, written(tmp_path, "pod.json", OBJECTS[-1]))


async def test_decisions_are_listed_page_by_page(ledger: str) -> None:
    async with over_stdio("--ledger", ledger) as client:
        whole = await call(client, "list", kind="all")
        pages = [await call(client, "list", kind="all", limit=1)]
        while pages[-1]["before"]:
            before = pages[-1]["before"]
            pages.append(await call(client, "list", kind="all", limit=1, before=before))
    assert [each for page in pages for each in page["decisions"]] == whole["decisions"]
    assert len(pages) == 3


async def test_only_tools_whose_source_is_configured_are_offered(ledger: str, cluster: str) -> None:
    async with over_stdio("--ledger", ledger) as client:
        assert await tool_names(client) == ["why", "list"]
        with pytest.raises(MCPError, match="no tool 'explain'; expected one of why, list"):
            await client.call_tool("explain", {"pod": "default/vip"})
    async with over_stdio("--cluster", cluster) as client:
        assert await tool_names(client) == ["explain", "simulate"]


async def test_bad_input_is_one_line(ledger: str, cluster: str) -> None:
    async with over_stdio("--ledger", ledger, "--cluster", cluster) as client:
        assert await error(client, "explain", pod="default/none") == (
            f'no pod "default/none" in --cluster {cluster}'
        )
        assert await error(client, "why", pod="default/none", uid="1") == (
            f'pod "default/none" with UID "1": no preemption of or for it is in {ledger}'
        )
        assert (await error(client, "why", pod="none")).startswith("arguments: pod: expected str")
        assert (await error(client, "list", since="soon")).startswith("arguments: since: 'soon'; ")
        assert (await error(client, "list", limit=101)).startswith("arguments: limit: expected int")


async def test_only_gets_reach_the_api_server() -> None:
    with FakeCluster.in_thread() as cluster:
        cluster.load(OBJECTS)
        seen = len(cluster.requests)
        async with over_stdio("--server", cluster.url) as client:
            explained = await call(client, "explain", pod="default/vip")
            await call(client, "simulate", pod_manifest=VIP, changes=VIP)
        sent = cluster.requests[seen:]
    assert [victim["name"] for victim in explained["victims"]] == ["web"]
    assert {request.method for request in sent} == {"GET"}


async def test_a_server_that_does_not_answer_is_one_line() -> None:
    async with over_stdio("--server", "http://127.0.0.1:1") as client:
        line = await error(client, "explain", pod="default/vip")
    assert line.startswith("GET http://127.0.0.1:1/api: ")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "attacker.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://attacker.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "mcp.example"}, 200),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://mcp.example"}, 200),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
async def test_requests_need_the_token_and_a_known_name(
    headers: dict[str, str], status: int, ledger: str, token_file: str
) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"Accept": "application/json, text/event-stream"}
    options = ("--ledger", ledger, "--token-file", token_file, "--hosts", "mcp.example")
    async with (
        serving("mcp", "--http", *options) as url,
        aiohttp.ClientSession(headers={**accepted, **headers}) as session,
        session.post(f"{url}/mcp", json=ping) as response,
    ):
        assert response.status == status, await response.text()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "expected --ledger, or a cluster: --cluster, --kubeconfig, --context or --server"),
        (("--ledger", "none.db"), "none.db: no such file"),
        (("--cluster", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
        (("--cluster", "-"), "--cluster -: the client uses standard input; expected a file"),
        (
            ("--cluster", "a.yaml", "--server", "http://a"),
            "--cluster and --server exclude each other",
        ),
        (("--server", "http://a", "--port", "1"), "--port: expected --http as well"),
        (
            ("--server", "http://a", "--http"),
            "--http: needs a token; expected --token-file, or $REPRIEVE_TOKEN",
        ),
        (
            ("--server", "http://a", "--http", "--host", "0.0.0.0"),  # noqa: S104 - refused
            (
                "--host: 0.0.0.0 is no loopback address; expected one, or allowPlainHTTP: true in "
                "--config"
            ),
        ),
    ],
)
async def test_bad_usage_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = await reprieve("mcp", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"reprieve: {line}\n")


def test_without_the_extra_the_command_names_it() -> None:
    program = "import sys; sys.modules['mcp'] = None; from fakeapi.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "mcp", "--server", "http://127.0.0.1:1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "reprieve: reprieve mcp needs the extra 'mcp': pip install 'reprieve[mcp]'\n"
    )
