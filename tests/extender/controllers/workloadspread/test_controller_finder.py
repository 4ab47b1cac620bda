"""Owners and targets: from a copy if it has them, else from the server."""

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
from tests.builders import Document
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set

SET = WorkloadReference("apps/v1", "ReplicaSet", "web")
GAME = WorkloadReference("game.kruise.io/v1", "Game", "web")
GAMES = AllowedKinds((AllowedKind("game.kruise.io", "", "Game"),))


@asynccontextmanager
async def known(*documents: Document) -> AsyncIterator[tuple[VirtualCluster, ControllerFinder]]:
    cluster = VirtualCluster(run="none")
    cluster.load(documents)
    async with cluster:
        client = Client(cluster.local_transport("reader"))
        informers = SharedInformerFactory(client, cluster.clock, Random(0))
        try:
            yield cluster, ControllerFinder(client, informers)
        finally:
            await informers.stop()
            await client.close()


def reads(cluster: VirtualCluster) -> int:
    """Count the single objects that the reader has asked for."""
    return sum(
        record.user_agent == "reader" and record.method == "GET" and not record.query
        for record in cluster.requests
    )


def owned(document: Document, kind: str, name: str) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u"}
    metadata = {**document["metadata"], "ownerReferences": [{**reference, "controller": True}]}
    return {**document, "metadata": metadata}


async def test_a_found_owner_is_cached() -> None:
    async with known(a_replica_set()) as (cluster, workloads):
        for _ in range(3):
            found = await workloads.get(SET, "default")
            assert found is not None
            assert found.identity == SET.identity
            await cluster.clock.advance(1)
        assert reads(cluster) == 1


async def test_a_copy_that_another_party_has_dropped_is_made_anew() -> None:
    async with known(a_replica_set()) as (cluster, workloads):
        await workloads.get(SET, "default")
        await cluster.clock.advance(1)
        workloads.informers.drop(REPLICA_SETS, workload_decoder("ReplicaSet", ()))
        for _ in range(3):
            assert await workloads.get(SET, "default") is not None
            await cluster.clock.advance(1)
        assert reads(cluster) == 2


async def test_objects_missing_in_the_cache_are_read_from_the_server() -> None:
    async with known(a_replica_set()) as (cluster, workloads):
        await workloads.get(SET, "default")
        await cluster.clock.advance(1)
        other = WorkloadReference("apps/v1", "ReplicaSet", "other")
        assert await workloads.get(other, "default") is None
        cluster.faults.plan(fault("silence").on("watch", "replicasets"))
        cluster.load([a_replica_set(name="other")])
        assert await workloads.get(other, "default") is not None


async def test_what_has_gone_is_not_found_any_more() -> None:
    async with known(a_replica_set()) as (cluster, workloads):
        await workloads.get(SET, "default")
        await cluster.client.delete(REPLICA_SETS.object("web", "default"))
        await cluster.clock.advance(1)
        assert await workloads.get(SET, "default") is None


@pytest.mark.parametrize("served", [True, False])
async def test_kinds_of_others_are_found_by_discovery(*, served: bool) -> None:
    kind = definition("game.kruise.io/v1", "Game")
    game = {
        "apiVersion": "game.kruise.io/v1",
        "kind": "Game",
        "metadata": {"name": "web", "namespace": "default"},
    }
    async with known(*([kind, game] if served else [])) as (_, workloads):
        assert (await workloads.get(GAME, "default") is not None) == served
        assert (
            await workloads.get(WorkloadReference("game.kruise.io/v1", "Other", "web"), "x") is None
        )


@pytest.mark.parametrize("what", [fault(403), fault("drop")], ids=["refused", "no answer"])
async def test_an_unreadable_object_is_distinguished_from_a_missing_one(what: Fault) -> None:
    async with known(a_replica_set()) as (cluster, workloads):
        cluster.faults.plan(what.on("get", "replicasets"))
        with pytest.raises(WorkloadReadError, match="ReplicaSet web: GET /apis/apps/v1"):
            await workloads.get(SET, "default")
        chain = await workloads.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert chain.owners.unread == {SET.identity}
        assert chain.complete


async def test_a_chain_ends_where_nothing_leads_further() -> None:
    sets = [owned(a_replica_set(), "Deployment", "web"), a_replica_set(name="alone")]
    async with known(*sets) as (_, workloads):
        deployment = WorkloadReference("apps/v1", "Deployment", "web")
        broken = await workloads.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert (broken.links, broken.complete) == ((SET.identity, deployment.identity), False)
        alone = WorkloadReference("apps/v1", "ReplicaSet", "alone")
        whole = await workloads.owner_chain(alone, "default", NO_ALLOWED_KINDS)
        assert (whole.links, whole.complete) == ((alone.identity,), True)
        unknown = await workloads.owner_chain(GAME, "default", NO_ALLOWED_KINDS)
        assert (unknown.links, unknown.complete) == ((GAME.identity,), True)
        allowed = await workloads.owner_chain(GAME, "default", GAMES)
        assert (allowed.links, allowed.complete) == ((GAME.identity,), False)


async def test_a_circle_is_followed_once() -> None:
    sets = [owned(a_replica_set(), "ReplicaSet", "other")]
    sets.append(owned(a_replica_set(name="other"), "ReplicaSet", "web"))
    async with known(*sets) as (_, workloads):
        chain = await workloads.owner_chain(SET, "default", NO_ALLOWED_KINDS)
        assert ([link.name for link in chain.links], chain.complete) == (["web", "other"], True)
