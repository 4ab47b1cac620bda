"""What was recorded and is played again is what there was, whatever happened on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.kube.rest.client import Client
from extender.recording.files import Recording, read_recording
from fakeapi import VirtualCluster
from fakeapi.replay.player import Player
from fakeapi.simulation.store_recorder import record_world
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.replay.random_world import Document, Evolution, contents, recording
from tests.sampling import examples

PARTS = "gc,namespaces,replicaset"
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
"""What goes wrong between the server and who records it."""

End = dict[tuple[str, str, str], Document]


async def lived(path: Path, seed: int, steps: int, *, upset: bool) -> End:
    """Record a life from within, and give how it ended."""
    async with VirtualCluster(run=PARTS, seed=seed) as cluster:
        life = Evolution(cluster, seed)
        life.prepare()
        with cluster.record(path):
            for step in range(steps):
                await life.step()
                await cluster.clock.advance(1.7)
                if upset and step % 7 == 3:
                    life.upset()
        return contents(cluster)


async def watched(path: Path, seed: int, steps: int, troubles: tuple[Fault, ...]) -> End:
    """Record a life through a client with injected faults, and return how it ended."""
    async with VirtualCluster(run=PARTS, seed=seed) as cluster:
        life = Evolution(cluster, seed)
        life.prepare()
        client = Client(cluster.local_transport("recorder/1"))
        cluster.faults.plan(*(trouble.by(RECORDER) for trouble in troubles), seed=seed)
        async with recording(client, cluster.clock, path, seed):
            for _ in range(steps):
                await life.step()
                await cluster.clock.advance(1.7)
            cluster.faults.end()
            await cluster.clock.advance(900)
        await client.close()
        return contents(cluster)


async def replayed(recorded: Recording, path: Path) -> tuple[End, bool]:
    """Replay a recording, and record that; return how it ended, and whether they are equal."""
    async with VirtualCluster(run="none", start_ns=recorded.header.start_ns) as cluster:
        player = Player(cluster.world, recorded, ())
        player.begin()
        with record_world(cluster.world, str(path)):
            playing = asyncio.create_task(player.play())
            await cluster.clock.advance(player.seconds)
            await playing
        return contents(cluster), player.report().same


def lines(recorded: Recording) -> list[tuple[object, ...]]:
    """Return the events without the versions and without the times of lists."""
    return [
        (event.at_ns, event.type, event.resource, event.key, event.metadata.uid)
        for event in recorded.events
        if event.is_object_event
    ]


def run(seed: int, steps: int, *, upset: bool) -> None:
    async def scene(folder: Path) -> None:
        first, second, third = (folder / f"{n}.jsonl" for n in "123")
        end = await lived(first, seed, steps, upset=upset)
        recorded = read_recording(str(first))
        assert await replayed(recorded, second) == (end, True)
        again = read_recording(str(second))
        assert await replayed(again, third) == (end, True)
        assert second.read_bytes() == third.read_bytes()
        if not upset:
            assert lines(again) == lines(recorded)

    with TemporaryDirectory() as folder:
        asyncio.run(scene(Path(folder)))


@settings(max_examples=examples(12))
@given(st.integers(0, 2**32), st.integers(5, 40))
def test_a_world_recorded_from_within_is_played_back_and_recorded_to_the_byte(
    seed: int, steps: int
) -> None:
    run(seed, steps, upset=False)


@settings(max_examples=examples(8))
@given(st.integers(0, 2**32), st.integers(5, 40))
def test_a_world_that_forgets_and_is_restored_meanwhile_ends_the_same(
    seed: int, steps: int
) -> None:
    run(seed, steps, upset=True)


@settings(max_examples=examples(18))
@example(1032, FAULTS[0])  # custom objects are there before anything is listed
@given(st.integers(0, 2**32), st.sampled_from(FAULTS))
def test_whatever_happens_to_who_records_the_end_is_that_of_the_server(
    seed: int, troubles: tuple[Fault, ...]
) -> None:
    async def scene(folder: Path) -> None:
        first, second = folder / "1.jsonl.gz", folder / "2.jsonl"
        end = await watched(first, seed, 25, troubles)
        assert await replayed(read_recording(str(first)), second) == (end, True)

    with TemporaryDirectory() as folder:
        asyncio.run(scene(Path(folder)))
