"""The demo tells its whole story, the same each time."""

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
    assert "default/preemptor-ct goes to node-a" in story
    assert "research/pretrain goes to gpu-" in story
    assert "data/too-big fits 0 of 40 nodes" in story
    assert "decided by" in story
    assert "PDBs broken" in story


async def test_the_story_is_the_same_each_time() -> None:
    first, second = [(await told()).splitlines()[2:] for _ in range(2)]
    assert first == second
