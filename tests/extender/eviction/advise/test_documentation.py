"""The example in docs/eviction.md has the documented output."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from random import Random

import pytest
import yaml

from extender.eviction.advise.output import single_printer
from extender.eviction.advise.run import RunContext, advise
from extender.terminal.output import OutputFormat
from fakeapi import VirtualCluster
from policies.eviction.proactive_eviction import MIN_TREND_MEASUREMENTS
from policies.eviction.trends import MAX_MEASUREMENTS
from tests.extender.eviction.advise.clusters import doing, watching

TEXT = (Path(__file__).parents[4] / "docs" / "eviction.md").read_text()
BLOCKS = {
    match["name"]: match["body"]
    for match in re.finditer(
        r"<!-- (?P<name>advice\S*) -->\n\n```\w+\n(?P<body>.*?)```", TEXT, re.DOTALL
    )
}
LATER = 150


async def test_the_example_has_the_documented_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, answer = BLOCKS["advice"].partition("\n")
    assert shlex.split(command)[-3:] == ["--cordon-and-evict", "--within", "10m"]
    monkeypatch.setenv("COLUMNS", "100")
    async with VirtualCluster(run="kubelet", kubelet=BLOCKS["advice-book.yaml"]) as cluster:
        await cluster.clock.advance(1)
        cluster.load(yaml.safe_load_all(BLOCKS["advice-pods.yaml"]))
        await cluster.clock.advance(LATER)
        with single_printer(OutputFormat.TABLE, 10) as screen:
            around = RunContext(cluster.clock, Random(1), screen)
            looking, wanted = watching(samples=MIN_TREND_MEASUREMENTS), doing(10, really=False)
            task = asyncio.create_task(advise(cluster.local_transport(), looking, wanted, around))
            await cluster.clock.advance(61)
            assert await task == 0
    out = capsys.readouterr().out
    assert [line.rstrip() for line in out.splitlines()] == answer.splitlines()


def test_the_documented_numbers_of_measurements_are_the_actual_ones() -> None:
    assert (MAX_MEASUREMENTS, MIN_TREND_MEASUREMENTS) == (12, 5)
    assert "the last twelve readings" in TEXT
    assert "five readings are" in TEXT
