"""The pages of the ledger, as a serving process serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.access_token import read_token
from extender.config.component_config import Config, LedgerConfig, PageConfig
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.clock import Clock
from extender.ledger.entry import LedgerRecord
from extender.ledger.inputs.counterfactuals import CounterfactualProcess
from extender.ledger.storage.location import LazyReader
from extender.ledger.storage.queries import Ledger
from extender.ledger_page.app import PageOptions, build_ui_app
from extender.ledger_page.nodes_view import NodeUse
from extender.secure_serving.connection_limits import ConnectionRegistry
from extender.secure_serving.listener import ContextSource, serve_app
from policies.kubernetes.snapshot import NodeState


@asynccontextmanager
async def serve_page(
    settings: Config,
    page: PageConfig,
    kept: LedgerConfig,
    cluster: SchedulerCache,
    clock: Clock,
    context: ContextSource | None,
) -> AsyncIterator[str]:
    """Serve the pages of the ledger ``kept`` while the block runs; yield their URL.

    Raise ConfigError if the token cannot be read, or the address cannot be used.
    """
    ledger = Ledger(LazyReader(kept.location))
    searching = CounterfactualProcess(kept.location)

    async def counterfactuals(record: LedgerRecord, uid: str) -> Sequence[str] | None:
        found = await searching.find(record.entry.id, uid)
        return None if found is None else [str(each) for each in found]

    async def nodes(since_ns: int, until_ns: int) -> Sequence[NodeUse]:
        bound = await ledger.bindings_by_node(since_ns, until_ns)
        states = cluster.snapshot().nodes
        return [NodeUse(name, _fraction(states[name]), bound.get(name, 0)) for name in states]

    options = PageOptions(
        read_token(page.token_file), frozenset(page.hosts), counterfactuals, nodes
    )
    app = build_ui_app(ledger, options, clock)
    listening = msgspec.structs.replace(settings, host=page.host, port=page.port)
    connections = ConnectionRegistry(settings.limits, clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(ledger.close)
        serving = serve_app(app, listening, connections, context)
        try:
            listener = await stack.enter_async_context(serving)
        except OSError as error:
            raise ConfigError(f"page: {page.host}:{page.port}: {error.strerror}") from None
        yield f"{listener.url}/ui/"
        await listener.finish()


def _fraction(state: NodeState) -> float:
    """Return the largest requested fraction of the resources of a node, at most 1."""
    allocatable, requested = state.node.allocatable, state.requested
    pairs = [
        (requested.milli_cpu, allocatable.milli_cpu),
        (requested.memory, allocatable.memory),
        *((requested.scalars.get(name, 0), amount) for name, amount in allocatable.scalars.items()),
    ]
    return max((min(1.0, used / amount) for used, amount in pairs if amount), default=0.0)
