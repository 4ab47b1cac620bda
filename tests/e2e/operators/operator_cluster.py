"""An operator as a process, and a cluster in which it keeps the children of Widgets.

Every operator follows the same rules. It leads by a Lease, adds a finalizer to each Widget, keeps a
ConfigMap and a Deployment of its name by server-side apply, reports the size in its status and with
an Event, and deletes the children before it removes the finalizer. On SIGTERM it releases
the Lease, as client-go does: it shortens the duration to a second.
"""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.wire.http_messages import ADMIN_USER
from tests.builders import Document
from tests.builders.definitions import INTEGER, definition, record, version, widget
from tests.conformance.clusters.watched_cluster import WatchedCluster, is_going, open_session
from tests.conformance.objects import NAMESPACE, NAMESPACE_DOCUMENT, with_metadata
from tests.e2e.operators.build import LANGUAGES, NoToolError, built

SCENARIO: Final = "scenario"
"""The User-Agent of the test, and the token of its user."""
IDENTITY: Final = "operator-0"
ACCESS: Final[Mapping[str, Mapping[str, Any]]] = {
    "plain-http": {},
    "certificate": {"tls": True, "tokens": {SCENARIO: ADMIN_USER}},
    "token": {"tls": True, "token": SCENARIO},
}
"""How a kubeconfig authenticates → options of the cluster."""

_START_SECONDS: Final = 60.0
_STATUS: Final = record(size=INTEGER, observedGeneration=INTEGER)
_SCHEMA: Final = record(spec=record(size=INTEGER), status=_STATUS)
_DEFINITION: Final = definition(versions=[version(schema=_SCHEMA, subresources={"status": {}})])
_RECORD: Final = re.compile(r"^(?= *(?:INFO|WARN|ERROR) )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """An operator's language, its access to the cluster, and environment variables for it."""

    language: str
    access: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the name of the case."""
        return "-".join((self.language, self.access, *map(str.lower, self.environment)))


class WidgetCluster(WatchedCluster):
    """Widgets and what an operator made of them."""

    def __init__(self, http: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        super().__init__(http, group)
        self._created = 0

    async def create_widget(self, size: int) -> str:
        """Create a Widget under the next free name, and return the name."""
        self._created += 1
        name = f"widget-{self._created}"
        await self.create(with_metadata(widget(name, size=size), name=name, namespace=NAMESPACE))
        return name

    async def change(self, rng: Random) -> None:
        """Create, resize or delete a Widget, or delete one of its children."""
        names = [thing["metadata"]["name"] for thing in self.all("Widget") if not is_going(thing)]
        name = rng.choice(names) if len(names) > 2 else await self.create_widget(1)
        match rng.choice(("create", "resize", "resize", "delete", "ConfigMap", "Deployment")):
            case "create":
                await self.create_widget(rng.randrange(9))
            case "resize":
                await self.patch("Widget", name, {"spec": {"size": rng.randrange(9)}})
            case "delete":
                await self.delete("Widget", name)
            case child if self.get(child, name):
                await self.delete(child, name)

    def is_reconciled(self) -> bool:
        """Return whether all Widgets have their children, status and finalizer, and no others."""
        return (
            self._sizes("Widget", ("spec", "size"))
            == self._sizes("Widget", ("status", "size"))
            == self._sizes("ConfigMap", ("data", "size"))
            == self._sizes("Deployment", ("spec", "replicas"))
            == self._sizes("Deployment", ("metadata", "annotations", "example.com/size"))
        ) and all(map(_is_observed, self.all("Widget")))

    def _sizes(self, kind: str, path: tuple[str, ...]) -> dict[str, int | None]:
        return {
            thing["metadata"]["name"]: _number_at(thing, path)
            for thing in self.all(kind)
            if thing["metadata"]["name"] != "kube-root-ca.crt"
        }

    @property
    def lease(self) -> Document:
        """The spec of the operator's Lease."""
        found = self.get("Lease", "operator", "default")
        spec: Document = {} if found is None else found["spec"]
        return spec

    @property
    def renewed(self) -> datetime:
        """When the Lease was renewed the last time."""
        return datetime.fromisoformat(self.lease["renewTime"])

    async def until_renewed(self) -> None:
        """Return after the next renewal of the Lease."""
        before = self.renewed
        await self.until(lambda: self.renewed > before)


@dataclass(frozen=True, slots=True)
class Operated:
    """A cluster with an operator."""

    server: FakeCluster
    widgets: WidgetCluster
    log: Path

    def errors(self) -> list[str]:
        """Return the warnings and errors that the operator has logged."""
        records = _RECORD.split(self.log.read_text())
        return [each.strip() for each in records if not re.match(r"\s*(INFO |$)", each)]


@asynccontextmanager
async def cluster(case: OperatorCase, directory: Path) -> AsyncIterator[Operated]:
    """Run a cluster for an operator, and follow what it writes."""
    headers = {"User-Agent": SCENARIO}
    if case.access != "plain-http":
        headers["Authorization"] = f"Bearer {SCENARIO}"
    async with FakeCluster(**ACCESS[case.access]) as server:
        server.load([_DEFINITION, NAMESPACE_DOCUMENT])
        async with open_session(server.url, headers) as http, asyncio.TaskGroup() as group:
            widgets = WidgetCluster(http, group)
            widgets.follow("Widget", "ConfigMap", "Deployment", "Lease", "Event")
            yield Operated(server, widgets, directory / "log")
            widgets.end()


@asynccontextmanager
async def running(case: OperatorCase, operated: Operated) -> AsyncIterator[None]:
    """Run the operator until the block ends; assert that it has started, and that it ends."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(operated.server.kubeconfig_path),
        "POD_NAME": IDENTITY,
        **case.environment,
    }
    directory = operator_directory(case.language)
    with operated.log.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *LANGUAGES[case.language].run, cwd=directory, env=environment, stdout=PIPE, stderr=log
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
        assert line == b"running\n", operated.log.read_text()
        await operated.widgets.until(lambda: "renewTime" in operated.widgets.lease)
        yield
        assert process.returncode is None, operated.log.read_text()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def operator_directory(language: str) -> Path:
    """Return an operator's directory; skip the test if its tools are missing."""
    try:
        return built(language)
    except NoToolError as error:
        pytest.skip(str(error))


def _is_observed(thing: Document) -> bool:
    metadata = thing["metadata"]
    observed = thing.get("status", {}).get("observedGeneration")
    return observed == metadata["generation"] and "finalizers" in metadata


def _number_at(thing: Document, path: tuple[str, ...]) -> int | None:
    value: Any = thing
    for key in path:
        value = value.get(key, {})
    return int(value) if value or value == 0 else None
