"""A repeated error is logged once."""

from __future__ import annotations

import pytest

from extender.kube.rest.rate_limited_log import OnceLog


def logged_objects(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.split("object=")[-1].split()[0] for line in capsys.readouterr().out.splitlines()]


def test_the_same_message_of_an_object_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog(controller="tester")
    for _ in range(3):
        log.warning("odd", "default/a", error="x")
        log.warning("odd", "default/b", error="x")
    assert logged_objects(capsys) == ["default/a", "default/b"]


def test_a_changed_message_is_logged_again(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog()
    for error in ("x", "y", "y", "x"):
        log.warning("odd", "default/a", error=error)
    assert len(logged_objects(capsys)) == 3


def test_the_oldest_of_many_messages_are_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    log = OnceLog()
    for number in range(5_000):
        log.warning("odd", f"default/{number}")
    capsys.readouterr()
    log.warning("odd", "default/4999")
    log.warning("odd", "default/0")
    assert logged_objects(capsys) == ["default/0"]
