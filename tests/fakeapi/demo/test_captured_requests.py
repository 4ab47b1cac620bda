"""The demo runs completely, the same each time."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from fakeapi.demo.captured_requests import run_captured_requests


async def told() -> str:
    text = StringIO()
    await run_captured_requests(Console(file=text, width=140, highlight=False))
    return text.getvalue()


async def test_every_question_is_answered_and_explained() -> None:
    story = await told()
    assert story.count("POST /filter → 200") == 4
    assert story.count("POST /preempt → 200") == 4
    assert "default/preemptor-ct preempts pods on node-a" in story
    assert "research/pretrain preempts pods on gpu-" in story
    assert "data/too-big fits 0 of 40 nodes" in story
    assert "decided by" in story
    assert "PDBs violated" in story


async def test_the_scenario_is_the_same_each_time() -> None:
    first, second = [(await told()).splitlines()[2:] for _ in range(2)]
    assert first == second
