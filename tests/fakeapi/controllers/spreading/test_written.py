"""What was written is the newest until a copy shows it, and one writes at a time."""

from __future__ import annotations

import pytest

from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread
from fakeapi.controllers.spreading.written import Written
from tests.builders import encoded
from tests.spreads import spread_json


def at_version(version: str) -> WrittenSpread:
    document = spread_json({"name": "a"})
    document["metadata"]["resourceVersion"] = version
    return decode_spread(encoded(document))


@pytest.mark.parametrize(
    ("kept", "seen", "newest"),
    [("9", "10", "10"), ("10", "9", "10"), ("10", "10", "10"), ("9", "", "9"), ("x", "9", "9")],
)
def test_the_higher_number_is_the_newer(kept: str, seen: str, newest: str) -> None:
    written = Written()
    written.keep(at_version(kept))
    assert written.newest(at_version(seen)).spread.resource_version == newest


def test_an_older_outcome_does_not_replace_a_newer_one() -> None:
    written = Written()
    written.keep(at_version("10"))
    written.keep(at_version("9"))
    assert written.newest(at_version("1")).spread.resource_version == "10"


@pytest.mark.parametrize(("seen", "left"), [("9", 1), ("10", 0), ("11", 0)])
def test_what_a_copy_shows_need_not_be_remembered(seen: str, left: int) -> None:
    written = Written()
    written.keep(at_version("10"))
    written.shown(at_version(seen))
    assert len(written) == left


def test_what_has_gone_is_forgotten() -> None:
    written = Written()
    written.keep(at_version("10"))
    written.overtaken(at_version("10"))
    written.forget(at_version("10").spread.uid)
    written.forget("never seen")
    assert len(written) == 0
    assert not written.is_overtaken(at_version("10"))
    assert not written.is_foreign(at_version("11"))


def test_what_the_server_has_shown_is_the_newest_too() -> None:
    written = Written()
    written.keep(at_version("9"))
    written.learn(at_version("10"))
    assert written.newest(at_version("9")).spread.resource_version == "10"


def test_what_is_newer_than_the_last_own_write_is_of_others() -> None:
    written = Written()
    assert not written.is_foreign(at_version("11"))
    written.keep(at_version("10"))
    written.shown(at_version("10"))
    seen = [written.is_foreign(at_version(version)) for version in ("9", "10", "11")]
    assert seen == [False, False, True]


def test_what_a_conflict_was_about_is_known_to_be_old() -> None:
    written = Written()
    assert not written.is_overtaken(at_version("9"))
    written.overtaken(at_version("10"))
    known = [written.is_overtaken(at_version(version)) for version in ("9", "10", "11")]
    assert known == [True, True, False]


async def test_one_has_its_turn_at_a_time_and_others_do_not_wait() -> None:
    written = Written()
    async with written.turn("one"):
        assert written.turn("one").locked()
        assert not written.turn("other").locked()
    assert not written.turn("one").locked()
