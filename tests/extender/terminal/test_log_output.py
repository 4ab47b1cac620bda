"""The log on stderr has the configured level, and lines for machines or for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from extender.terminal.log_output import LogFormat, LogLevel, log_to_stderr
from fakeapi.testing.fake_cluster import FakeCluster
from tests.commands import start

LEVELS = ["debug", "info", "warning", "error"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("level", LogLevel)
def test_less_severe_events_are_not_logged(
    level: LogLevel, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr(level)
    log = structlog.get_logger()
    for each in LEVELS:
        getattr(log, each)("listed", items=2)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["level"] for line in lines] == LEVELS[LEVELS.index(level.value) :]
    assert all((line["event"], line["items"]) == ("listed", 2) for line in lines)


def test_a_text_line_has_the_fields_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(LogLevel.INFO, LogFormat.TEXT)
    structlog.get_logger().bind(resource="pods").info("informer_listed", items=2)
    _, _, *words = capsys.readouterr().err.replace("]", "").split()
    assert words == ["informer_listed", "items=2", "resource='pods'"]


def test_a_value_never_begins_a_line_or_colours_it(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(LogLevel.INFO, LogFormat.TEXT)
    structlog.get_logger().warning("refused", problem="a\nb\x1b[31m", names=["c\nd"])
    [line] = capsys.readouterr().err.splitlines()
    assert r"problem='a\nb\x1b[31m'" in line
    assert r"names=['c\nd']" in line
    assert "\x1b" not in line


def test_an_exception_follows_its_text_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(LogLevel.ERROR, LogFormat.TEXT)
    structlog.get_logger().error("internal_error", exc_info=ValueError("broken"))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.split()[-1] == "internal_error"
    assert last == "ValueError: broken"


async def test_serve_logs_as_its_configuration_sets(tmp_path: Path) -> None:
    config = tmp_path / "reprieve.yaml"
    config.write_text("port: 0\nlog: {level: info, format: text}\n")
    async with FakeCluster(run="none") as cluster:
        process = await start("serve", "--server", cluster.url, "--config", str(config))
        assert process.stdout is not None
        assert process.stderr is not None
        assert (await process.stdout.readline()).startswith(b"listening on http://127.0.0.1:")
        listed = await process.stderr.readline()
        process.terminate()
        await process.communicate()
    assert process.returncode == 0
    assert b"[info     ] informer_listed" in listed
