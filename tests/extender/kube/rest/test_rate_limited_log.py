"""A repeated error is logged once."""

from __future__ import annotations

import pytest

from extender.kube.rest.rate_limited_log import OnceLog


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.split("object=")[-1].split()[0] for line in capsys.readouterr().out.splitlines()]


def test_the_same_of_the_same_object_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog(controller="tester")
    for _ in range(3):
        log.warning("odd", "default/a", why="x")
        log.warning("odd", "default/b", why="x")
    assert said(capsys) == ["default/a", "default/b"]


def test_a_changed_message_is_logged_again(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog()
    for why in ("x", "y", "y", "x"):
        log.warning("odd", "default/a", why=why)
    assert len(said(capsys)) == 3


def test_of_very_many_the_first_are_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog()
    for number in range(5_000):
        log.warning("odd", f"default/{number}")
    capsys.readouterr()
    log.warning("odd", "default/4999")
    log.warning("odd", "default/0")
    assert said(capsys) == ["default/0"]
