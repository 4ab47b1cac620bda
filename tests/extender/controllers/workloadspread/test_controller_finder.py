"""Owners and targets: from the cache if it has them, else from the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from extender.controllers.workloadspread.controller_finder import (
    ControllerFinder,
    WorkloadReadError,
)
from extender.controllers.workloadspread.types import workload_decoder
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.client import Client
from extender.kube.rest.resources import REPLICA_SETS
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from policies.workloadspread.object_references import WorkloadReference
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKind, AllowedKinds
from tests.builders import Document, manifest
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set, controlled_by
from tests.stage import Stage

SET = WorkloadReference("apps/v1", "ReplicaSet", "web")
GAME = WorkloadReference("game.kruise.io/v1", "Game", "web")
GAMES = AllowedKinds((AllowedKind("game.kruise.io", "", "Game"),))


class FinderStage(Stage):
    """A stage whose reads of single objects are counted."""

    finder: ControllerFinder

    @property
    def reads(self) -> int:
        return sum(
            each.user_agent == "reader" and each.method == "GET" and not each.query
            for each in self.cluster.requests
        )


@asynccontextmanager
async def finder_stage(*documents: Document) -> AsyncIterator[FinderStage]:
    async with VirtualCluster(run="none") as cluster:
        stage = FinderStage(cluster)
        stage.load(*documents)
        client = Client(cluster.local_transport("reader"))
        informers = SharedInformerFactory(client, cluster.clock, Random(0))
        stage.finder = ControllerFinder(client, informers)
        try:
            yield stage
        finally:
            await informers.stop()
            await client.close()


def owned(kind: str, name: str) -> Document:
    """Build the ReplicaSet ``web`` with a controller."""
    document = a_replica_set()
    document["metadata"]["ownerReferences"] = [controlled_by(name, "u", kind)]
    return document


async def test_a_found_owner_is_cached() -> None:
    async with finder_stage(a_replica_set()) as stage:
        for _ in range(3):
            found = await stage.finder.get(SET, "default")
            assert found is not None
            assert found.identity == SET.identity
            await stage.passes()
        assert stage.reads == 1


async def test_a_dropped_informer_is_created_again() -> None:
    async with finder_stage(a_replica_set()) as stage:
        await stage.finder.get(SET, "default")
        await stage.passes()
        stage.finder.informers.drop(REPLICA_SETS, workload_decoder("ReplicaSet", ()))
        for _ in range(3):
            assert await stage.finder.get(SET, "default") is not None
            await stage.passes()
        assert stage.reads == 2


async def test_objects_missing_in_the_cache_are_read_from_the_server() -> None:
    async with finder_stage(a_replica_set()) as stage:
        await stage.finder.get(SET, "default")
        await stage.passes()
        other = WorkloadReference("apps/v1", "ReplicaSet", "other")
        assert await stage.finder.get(other, "default") is None
        stage.plan_faults(fault("silence").on("watch", "replicasets"))
        stage.load(a_replica_set("other"))
        assert await stage.finder.get(other, "default") is not None


async def test_a_deleted_object_is_not_found() -> None:
    async with finder_stage(a_replica_set()) as stage:
        await stage.finder.get(SET, "default")
        await stage.delete(REPLICA_SETS, "web")
        await stage.passes()
        assert await stage.finder.get(SET, "default") is None


@pytest.mark.parametrize("served", [True, False])
async def test_other_kinds_are_found_by_discovery(*, served: bool) -> None:
    kind = definition("game.kruise.io/v1", "Game")
    game = manifest("Game", "web", version="game.kruise.io/v1")
    async with finder_stage(*([kind, game] if served else [])) as stage:
        assert (await stage.finder.get(GAME, "default") is not None) == served
        other = WorkloadReference("game.kruise.io/v1", "Other", "web")
        assert await stage.finder.get(other, "x") is None


@pytest.mark.parametrize("error", [fault(403), fault("drop")], ids=["refused", "no answer"])
async def test_an_unreadable_object_is_distinguished_from_a_missing_one(error: Fault) -> None:
    async with finder_stage(a_replica_set()) as stage:
        stage.plan_faults(error.on("get", "replicasets"))
        with pytest.raises(WorkloadReadError, match="ReplicaSet web: GET /apis/apps/v1"):
            await stage.finder.get(SET, "default")
        chain = await stage.finder.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert chain.owners.unread == {SET.identity}
        assert chain.complete


async def test_a_chain_ends_at_the_last_known_owner() -> None:
    sets = [owned("Deployment", "web"), a_replica_set("alone")]
    async with finder_stage(*sets) as stage:
        deployment = WorkloadReference("apps/v1", "Deployment", "web")
        broken = await stage.finder.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert (broken.links, broken.complete) == ((SET.identity, deployment.identity), False)
        alone = WorkloadReference("apps/v1", "ReplicaSet", "alone")
        whole = await stage.finder.owner_chain(alone, "default", NO_ALLOWED_KINDS)
        assert (whole.links, whole.complete) == ((alone.identity,), True)
        unknown = await stage.finder.owner_chain(GAME, "default", NO_ALLOWED_KINDS)
        assert (unknown.links, unknown.complete) == ((GAME.identity,), True)
        allowed = await stage.finder.owner_chain(GAME, "default", GAMES)
        assert (allowed.links, allowed.complete) == ((GAME.identity,), False)


async def test_a_cycle_is_followed_once() -> None:
    other = a_replica_set("other")
    other["metadata"]["ownerReferences"] = [controlled_by("web", "u")]
    async with finder_stage(owned("ReplicaSet", "other"), other) as stage:
        chain = await stage.finder.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert ([link.name for link in chain.links], chain.complete) == (["web", "other"], True)
