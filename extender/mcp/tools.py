"""The tools that are offered: their names, descriptions, schemas, and how they are called.

A tool reads its sources through ports, and writes nothing. A tool whose source is not configured is
not offered. Decisions take place in a worker thread, one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from extender.explain.cluster_objects import ClusterObjects
from extender.ledger.storage.queries import Ledger
from extender.mcp.arguments import (
    ExplainArguments,
    ListArguments,
    SimulateArguments,
    WhyArguments,
    decode_arguments,
    input_schema,
)
from extender.mcp.cluster_tools import DecisionContext, explain_result, simulate_result
from extender.mcp.ledger_tools import list_result, list_selection, why_result
from extender.mcp.results import Json, ToolResult
from policies.preemption.policy import SchedulerRules

A = TypeVar("A", bound=msgspec.Struct)

_MOST_RECORDS: Final = 100
_MOST_OF_A_NAME: Final = 5_000
"""How many records of a name are searched for a UID."""

OpenLedger = Callable[[], AbstractAsyncContextManager[Ledger]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: ``call`` returns its result for arguments, and raises InputError and API errors."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Json]
    call: Callable[[Mapping[str, object]], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class ClusterPort:
    """The cluster of decisions: what reads its objects, and the rules of the scheduler."""

    read: Callable[[], Awaitable[ClusterObjects]]
    rules: SchedulerRules
    unknown_fields: Callable[[bytes], Iterable[str]]


def ledger_tools(open_ledger: OpenLedger, now_ns: Callable[[], int]) -> Iterator[Tool]:
    """Yield the tools about a ledger."""

    async def why(arguments: WhyArguments) -> ToolResult:
        most = _MOST_OF_A_NAME if arguments.uid else _MOST_RECORDS
        async with open_ledger() as ledger:
            records = await ledger.records_of_pod(arguments.pod, most)
            return why_result(arguments, records, ledger.location)

    async def list_decisions(arguments: ListArguments) -> ToolResult:
        selection = list_selection(arguments, now_ns())
        async with open_ledger() as ledger:
            records = await ledger.records(selection, arguments.limit + 1)
        return list_result(records, arguments.limit)

    yield _tool(
        "why",
        "Why a pod was preempted",
        "Return who preempted a pod or which pods it preempted, on which node, by which criterion, "
        "and what followed, from the ledger of decisions. The pod may no longer exist. The newest "
        "preemption is returned in full, and each other decision in a sentence.",
        WhyArguments,
        why,
    )
    yield _tool(
        "list",
        "List preemption decisions",
        "Return decisions of the ledger in short, the newest first. If there are more, before of "
        "the result is the cursor of the next page.",
        ListArguments,
        list_decisions,
    )


def cluster_tools(cluster: ClusterPort, now_ns: Callable[[], int]) -> Iterator[Tool]:
    """Yield the tools about a cluster."""
    one_at_a_time = asyncio.Lock()

    async def decide(
        arguments: A, result: Callable[[A, DecisionContext], ToolResult]
    ) -> ToolResult:
        async with one_at_a_time:
            objects = await cluster.read()
            context = DecisionContext(objects, cluster.rules, now_ns(), cluster.unknown_fields)
            return await asyncio.to_thread(result, arguments, context)

    yield _tool(
        "explain",
        "Explain a preemption",
        "Decide now, without effect, which pods would be preempted for a pod of the cluster that "
        "is pending, and return the node, the victims, the candidates and the reasons.",
        ExplainArguments,
        lambda arguments: decide(arguments, explain_result),
    )
    yield _tool(
        "simulate",
        "Simulate a preemption",
        "Decide, without effect, which pods would be preempted for a pod that does not exist, and "
        "return the node, the victims, the candidates and the reasons. The decision may assume "
        "another policy, and objects that the cluster does not have.",
        SimulateArguments,
        lambda arguments: decide(arguments, simulate_result),
    )


def _tool(
    name: str,
    title: str,
    description: str,
    kind: type[A],
    run: Callable[[A], Awaitable[ToolResult]],
) -> Tool:
    async def call(arguments: Mapping[str, object]) -> ToolResult:
        return await run(decode_arguments(kind, arguments))

    return Tool(name, title, description, input_schema(kind), call)
