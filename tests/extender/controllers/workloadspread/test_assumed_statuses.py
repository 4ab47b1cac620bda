"""An own write is the newest status until the cache shows it, and there is one writer."""

from __future__ import annotations

import pytest

from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from tests.builders import encoded
from tests.builders.workloadspread import spread_json


def at_version(version: str) -> StoredWorkloadSpread:
    document = spread_json({"name": "a"})
    document["metadata"]["resourceVersion"] = version
    return decode_workloadspread(encoded(document))


@pytest.mark.parametrize(
    ("kept", "seen", "newest"),
    [("9", "10", "10"), ("10", "9", "10"), ("10", "10", "10"), ("9", "", "9"), ("x", "9", "9")],
)
def test_the_higher_number_is_the_newer(kept: str, seen: str, newest: str) -> None:
    written = AssumedStatuses()
    written.record_write(at_version(kept))
    assert written.newest(at_version(seen)).spread.resource_version == newest


def test_an_older_outcome_does_not_replace_a_newer_one() -> None:
    written = AssumedStatuses()
    written.record_write(at_version("10"))
    written.record_write(at_version("9"))
    assert written.newest(at_version("1")).spread.resource_version == "10"


@pytest.mark.parametrize(("seen", "left"), [("9", 1), ("10", 0), ("11", 0)])
def test_statuses_seen_in_the_cache_are_dropped(seen: str, left: int) -> None:
    written = AssumedStatuses()
    written.record_write(at_version("10"))
    written.observe(at_version(seen))
    assert len(written) == left


def test_what_has_gone_is_forgotten() -> None:
    written = AssumedStatuses()
    written.record_write(at_version("10"))
    written.record_conflict(at_version("10"))
    written.forget(at_version("10").spread.uid)
    written.forget("never seen")
    assert len(written) == 0
    assert not written.is_outdated(at_version("10"))
    assert not written.is_written_by_others(at_version("11"))


def test_a_status_read_from_the_server_is_the_newest_too() -> None:
    written = AssumedStatuses()
    written.record_write(at_version("9"))
    written.record_read(at_version("10"))
    assert written.newest(at_version("9")).spread.resource_version == "10"


def test_a_version_after_the_last_own_write_is_of_another_client() -> None:
    written = AssumedStatuses()
    assert not written.is_written_by_others(at_version("11"))
    written.record_write(at_version("10"))
    written.observe(at_version("10"))
    seen = [written.is_written_by_others(at_version(version)) for version in ("9", "10", "11")]
    assert seen == [False, False, True]


def test_a_conflict_marks_the_version_as_outdated() -> None:
    written = AssumedStatuses()
    assert not written.is_outdated(at_version("9"))
    written.record_conflict(at_version("10"))
    known = [written.is_outdated(at_version(version)) for version in ("9", "10", "11")]
    assert known == [True, True, False]


async def test_one_has_its_turn_at_a_time_and_others_do_not_wait() -> None:
    written = AssumedStatuses()
    async with written.write_lock("one"):
        assert written.write_lock("one").locked()
        assert not written.write_lock("other").locked()
    assert not written.write_lock("one").locked()
