"""Replays of recordings reproduce the recorded clusters, with faults and restores in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.kube.rest.client import Client
from extender.recording.files import Recording, read_recording
from fakeapi import VirtualCluster
from fakeapi.replay.player import Player
from fakeapi.simulation.store_recorder import record_world
from fakeapi.testing.faults import Fault, fault
from tests.builders import Document
from tests.fakeapi.replay.churn_recording import played_back
from tests.fakeapi.replay.random_world import RandomWorld, contents, recording
from tests.properties.sampling import examples

RUN = "gc,namespaces,replicaset"
RECORDER = "recorder/*"

FAULTS: tuple[tuple[Fault, ...], ...] = (
    (fault("drop", when="after", after_frames=2).on("watch").probability(0.5),),
    (fault("cut", after_frames=3).on("watch").probability(0.5),),
    (fault("expire", after_frames=2).on("watch").probability(0.5),),
    (fault("lag", seconds=3.0).on("watch"),),
    (fault("silence", seconds=20.0, after_frames=1).on("watch").probability(0.3),),
    (
        fault("compact").on("watch").probability(0.3),
        fault("drop", when="after", after_frames=1).on("watch"),
    ),
    (fault(503).on("list").probability(0.5), fault("expire", after_frames=1).on("watch")),
    (fault("stale", behind=3).on("list"), fault("duplicate").on("watch")),
)
"""Faults between the server and the recorder."""

End = dict[tuple[str, str, str], Document]


async def record(path: Path, seed: int, steps: int, *, disturbed: bool) -> End:
    """Record random changes within the cluster, and return the objects at the end."""
    async with VirtualCluster(run=RUN, seed=seed) as cluster:
        world = RandomWorld(cluster, seed)
        world.prepare()
        with cluster.record(path):
            for step in range(steps):
                await world.step()
                await cluster.clock.advance(1.7)
                if disturbed and step % 7 == 3:
                    world.compact_or_restore()
        return contents(cluster)


async def record_with_faults(path: Path, seed: int, steps: int, faults: tuple[Fault, ...]) -> End:
    """Record random changes through a client with faults; return the objects at the end."""
    async with VirtualCluster(run=RUN, seed=seed) as cluster:
        world = RandomWorld(cluster, seed)
        world.prepare()
        client = Client(cluster.local_transport("recorder/1"))
        cluster.faults.plan(*(each.by(RECORDER) for each in faults), seed=seed)
        async with recording(client, cluster.clock, path, seed):
            for _ in range(steps):
                await world.step()
                await cluster.clock.advance(1.7)
            cluster.faults.end()
            await cluster.clock.advance(900)
        await client.close()
        return contents(cluster)


async def replayed(recorded: Recording, path: Path) -> tuple[End, bool]:
    """Replay a recording and record that; return the end, and whether both are equal."""
    async with VirtualCluster(run="none", start_ns=recorded.header.start_ns) as cluster:
        player = Player(cluster.world, recorded, ())
        player.begin()
        with record_world(cluster.world, str(path)):
            playing = asyncio.create_task(player.play())
            await cluster.clock.advance(player.seconds)
            await playing
        return contents(cluster), player.report().same


def lines(recorded: Recording) -> list[tuple[object, ...]]:
    """Return the events without versions and without times of lists."""
    return [
        (event.at_ns, event.type, event.resource, event.key, event.metadata.uid)
        for event in recorded.events
        if event.is_object_event
    ]


def check_round_trip(seed: int, steps: int, *, disturbed: bool) -> None:
    async def check(folder: Path) -> None:
        first, second, third = (folder / f"{n}.jsonl" for n in "123")
        end = await record(first, seed, steps, disturbed=disturbed)
        recorded = read_recording(str(first))
        assert await replayed(recorded, second) == (end, True)
        again = read_recording(str(second))
        assert await replayed(again, third) == (end, True)
        assert second.read_bytes() == third.read_bytes()
        if not disturbed:
            assert lines(again) == lines(recorded)

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@settings(max_examples=examples(12))
@given(st.integers(0, 2**32), st.integers(5, 40))
def test_a_replay_and_its_recording_equal_the_cluster(seed: int, steps: int) -> None:
    check_round_trip(seed, steps, disturbed=False)


@settings(max_examples=examples(8))
@given(st.integers(0, 2**32), st.integers(5, 40))
def test_compactions_and_restores_do_not_change_the_end(seed: int, steps: int) -> None:
    check_round_trip(seed, steps, disturbed=True)


@settings(max_examples=examples(18))
@example(1032, FAULTS[0])  # custom objects are there before anything is listed
@given(st.integers(0, 2**32), st.sampled_from(FAULTS))
def test_faults_of_the_recorder_do_not_change_the_end(seed: int, faults: tuple[Fault, ...]) -> None:
    async def check(folder: Path) -> None:
        first, second = folder / "1.jsonl.gz", folder / "2.jsonl"
        end = await record_with_faults(first, seed, 25, faults)
        assert await replayed(read_recording(str(first)), second) == (end, True)

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@pytest.mark.parametrize("seed", range(1))
async def test_ten_minutes_of_the_whole_control_plane_are_replayed(seed: int) -> None:
    """tests/e2e replays fifty others."""
    await played_back(seed)
