"""``reprieve demo questions`` in a test, and ``reprieve demo`` as a process."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fakeapi.demo.captured_requests import run_captured_requests
from tests.commands import reprieve


async def output() -> str:
    text = StringIO()
    await run_captured_requests(Console(file=text, width=140, highlight=False))
    return text.getvalue()


async def test_every_request_is_answered_and_explained() -> None:
    text = await output()
    assert text.count("POST /filter → 200") == 4
    assert text.count("POST /preempt → 200") == 4
    assert "default/preemptor-ct preempts pods on node-a" in text
    assert "research/pretrain preempts pods on gpu-" in text
    assert "data/too-big fits 0 of 40 nodes" in text
    assert "decided by" in text
    assert "PDBs violated" in text


async def test_the_scenario_is_the_same_each_time() -> None:
    first, second = [(await output()).splitlines()[2:] for _ in range(2)]
    assert first == second


@pytest.mark.slow
async def test_the_demo_runs_over_http() -> None:
    done = await reprieve("demo", "--speed", "5")
    assert (done.code, done.err) == (0, ""), done.out
    assert "\x1b" not in done.out
    for expected in ("reprieve on http://127.0.0.1:", "is evicted from", "accepted", "What's next"):
        assert expected in done.out
