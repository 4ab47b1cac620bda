"""Running a scenario with a server: its objects are created, then its commands run.

In the files of a scenario ``<webhooks>`` is the URL of an HTTPS server, which runs during the
scenario, and ``<bundle>`` its authority:

    /label    labels objects ``seen: yes``
    /warn     allows with a warning
    /quiet    denies objects with ``volume: 11``, with a code and a reason
    /hold     denies everything, without a reason
    /broken   answers 500
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from tests.e2e.transcripts import NAMESPACE, Exchange, Scenario, Step, normalise
from tests.fakeapi.webhook_server import serving

_PATCH: Final = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]


@asynccontextmanager
async def webhooks_of(scenario: Scenario) -> AsyncIterator[Mapping[str, str]]:
    """Serve the webhooks of a scenario, if it has any; yield its files with their address."""
    if not any("<webhooks>" in content for content in scenario.files.values()):
        yield scenario.files
        return
    async with serving(_answer) as server:
        yield {
            name: content.replace("<webhooks>", server.url).replace("<bundle>", server.ca_bundle)
            for name, content in scenario.files.items()
        }


async def _answer(request: web.BaseRequest) -> web.Response:
    if request.path == "/broken":
        return web.Response(status=500, text="it broke")
    review = await request.json()
    response = {"uid": review["request"]["uid"], **_RESPONSES[request.path](review["request"])}
    header = {name: review[name] for name in ("apiVersion", "kind")}
    return web.json_response({**header, "response": response})


def _label(_request: Any) -> dict[str, Any]:
    patch = b64encode(json.dumps(_PATCH).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _warn(_request: Any) -> dict[str, Any]:
    return {"allowed": True, "warnings": ["mind the neighbours"]}


def _quiet(request: Any) -> dict[str, Any]:
    loud = request["object"]["data"].get("volume") == "11"
    status = {"code": 403, "reason": "Forbidden", "message": "too loud"}
    return {"allowed": not loud, "status": status}


def _hold(_request: Any) -> dict[str, Any]:
    return {"allowed": False}


_RESPONSES: Final = {"/label": _label, "/warn": _warn, "/quiet": _quiet, "/hold": _hold}


PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server and its kubeconfig."""

    url: str
    kubeconfig: Path
    token: str = ""


def write_kubeconfig(path: Path, url: str, token: str = "", authority: bytes = b"") -> Path:
    """Write a kubeconfig for a server; without an ``authority`` its certificate is not verified."""
    cluster: dict[str, object] = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    else:
        cluster["insecure-skip-tls-verify"] = url.startswith("https:")
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}
        ],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))
    return path


async def play(
    scenario: Scenario, programs: Mapping[str, Path], target: Target, home: Path
) -> list[Exchange]:
    """Run a scenario in a new home directory; ``programs`` are the available commands."""
    await build_world(scenario.world, target)
    async with webhooks_of(scenario) as files:
        for name, content in files.items():
            (home / name).write_text(content)
        terminal = Terminal(programs, target, home)
        return [exchange for step in scenario.steps for exchange in await terminal.type(step)]


async def build_world(world: Sequence[Mapping[str, Any]], target: Target) -> None:
    """Create objects, their status included, in the scenario's namespace."""
    headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    async with aiohttp.ClientSession(target.url, headers=headers) as session:
        builder = _Builder(session)
        await builder.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        for thing in world:
            await builder.create(thing)


class _Builder:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._resources: dict[str, list[dict[str, Any]]] = {}

    async def create(self, thing: Mapping[str, Any]) -> None:
        collection = await self._collection(thing)
        await self._send("POST", collection, thing)
        if status := thing.get("status"):
            path = f"{collection}/{thing['metadata']['name']}/status"
            await self._send("PATCH", path, {"status": status})

    async def _send(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with self._session.request(
            method, path, json=body, headers=headers, ssl=False
        ) as answer:
            assert answer.status < 300, await answer.text()

    async def _collection(self, thing: Mapping[str, Any]) -> str:
        version = thing["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if base not in self._resources:
            async with self._session.get(base, ssl=False) as answer:
                self._resources[base] = (await answer.json())["resources"]
        resource = next(
            resource
            for resource in self._resources[base]
            if resource["kind"] == thing["kind"] and "/" not in resource["name"]
        )
        namespace = f"/namespaces/{NAMESPACE}" if resource["namespaced"] else ""
        return f"{base}{namespace}/{resource['name']}"


_UID_OF: Final = re.compile(r"<uid of ([\w/.-]+)>")


class Terminal:
    """Runs commands in its own directory.

    ``<uid of cm/name>`` in a command is replaced by the UID of that object.
    """

    def __init__(self, programs: Mapping[str, Path], target: Target, home: Path) -> None:
        self._programs = programs
        self._home = home
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "KUBECONFIG": str(target.kubeconfig),
            "KUBECACHEDIR": str(home / ".cache"),
            "TZ": "UTC",
        }

    async def type(self, step: Step) -> list[Exchange]:
        """Run one step; return its exchange and those of the steps during it."""
        process = await self._start(step)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if step.lines:
                    return await self._watch(process, step)
                output, _ = await process.communicate(step.stdin.encode())
        except TimeoutError:
            output = b"(still running)"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        printed = normalise(output.decode())
        if step.unordered:
            printed = "".join(sorted(printed.splitlines(keepends=True)))
        return [Exchange(step.command, printed, process.returncode or 0)]

    async def _watch(self, process: asyncio.subprocess.Process, step: Step) -> list[Exchange]:
        """Read the first lines, run the other steps, and read a line after each."""
        assert process.stdout is not None
        seen = [await process.stdout.readline() for _ in range(step.lines)]
        during = []
        for other in step.during:
            during += await self.type(other)
            seen.append(await process.stdout.readline())
        return [Exchange(step.command, normalise(b"".join(seen).decode())), *during]

    async def _with_uids(self, word: str) -> str:
        for named in _UID_OF.findall(word):
            asking = await asyncio.create_subprocess_exec(
                str(self._programs["kubectl"]),
                *("get", named, "-o", "jsonpath={.metadata.uid}"),
                env=self._environment,
                stdout=asyncio.subprocess.PIPE,
            )
            uid, _ = await asking.communicate()
            word = word.replace(f"<uid of {named}>", uid.decode())
        return word

    async def _start(self, step: Step) -> asyncio.subprocess.Process:
        words = step.words if step.words[0] in self._programs else ("kubectl", *step.words)
        return await asyncio.create_subprocess_exec(
            str(self._programs[words[0]]),
            *[await self._with_uids(word) for word in words[1:]],
            cwd=self._home,
            env={**self._environment, **step.environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
