"""A scheduler that calls Reprieve, on the same API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from extender.protocol.verb_context import Search
from fakeapi import VirtualCluster
from fakeapi.apiserver.webhooks.calls import WebhookFunction
from fakeapi.testing.extenders import InProcessReprieve
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from tests.fakeapi.controlplane.scheduler.stages import SchedulerStage, X, configured

RUN = "scheduler,kubelet,disruption"

SetLoop = Callable[..., Awaitable[SchedulerStage]]


@pytest.fixture
async def close_loop() -> AsyncIterator[SetLoop]:
    """Return stages on which the scheduler asks Reprieve."""
    async with AsyncExitStack() as stack:

        async def create(
            search: Search = Search.OFFERED,
            upstream: str = "1.38",
            webhooks: Mapping[str, WebhookFunction] | None = None,
            feature_gates: Mapping[str, bool] | None = None,
            **entry: Any,
        ) -> SchedulerStage:
            reprieve = InProcessReprieve(search, SchedulerRules(release(upstream, feature_gates)))
            cluster = VirtualCluster(
                run=RUN,
                extenders={X: reprieve},
                scheduler=configured(entry),
                upstream=upstream,
                webhooks=webhooks,
                feature_gates=feature_gates,
            )
            stage = SchedulerStage(await stack.enter_async_context(cluster))
            await stack.enter_async_context(reprieve.following(stage.cluster))
            return stage

        yield create
