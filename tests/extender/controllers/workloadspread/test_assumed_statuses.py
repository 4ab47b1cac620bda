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


@pytest.fixture
def statuses() -> AssumedStatuses:
    return AssumedStatuses()


@pytest.mark.parametrize(
    ("kept", "seen", "newest"),
    [("9", "10", "10"), ("10", "9", "10"), ("10", "10", "10"), ("9", "", "9"), ("x", "9", "9")],
)
def test_the_higher_number_is_the_newer(
    statuses: AssumedStatuses, kept: str, seen: str, newest: str
) -> None:
    statuses.record_write(at_version(kept))
    assert statuses.newest(at_version(seen)).spread.resource_version == newest


def test_an_older_outcome_does_not_replace_a_newer_one(statuses: AssumedStatuses) -> None:
    statuses.record_write(at_version("10"))
    statuses.record_write(at_version("9"))
    assert statuses.newest(at_version("1")).spread.resource_version == "10"


@pytest.mark.parametrize(("seen", "left"), [("9", 1), ("10", 0), ("11", 0)])
def test_statuses_seen_in_the_cache_are_dropped(
    statuses: AssumedStatuses, seen: str, left: int
) -> None:
    statuses.record_write(at_version("10"))
    statuses.observe(at_version(seen))
    assert len(statuses) == left


def test_a_forgotten_status_is_neither_outdated_nor_written_by_others(
    statuses: AssumedStatuses,
) -> None:
    statuses.record_write(at_version("10"))
    statuses.record_conflict(at_version("10"))
    statuses.forget(at_version("10").spread.uid)
    statuses.forget("never seen")
    assert len(statuses) == 0
    assert not statuses.is_outdated(at_version("10"))
    assert not statuses.is_written_by_others(at_version("11"))


def test_a_status_read_from_the_server_is_the_newest_too(statuses: AssumedStatuses) -> None:
    statuses.record_write(at_version("9"))
    statuses.record_read(at_version("10"))
    assert statuses.newest(at_version("9")).spread.resource_version == "10"


def test_a_version_after_the_last_own_write_is_of_another_client(statuses: AssumedStatuses) -> None:
    assert not statuses.is_written_by_others(at_version("11"))
    statuses.record_write(at_version("10"))
    statuses.observe(at_version("10"))
    seen = [statuses.is_written_by_others(at_version(version)) for version in ("9", "10", "11")]
    assert seen == [False, False, True]


def test_a_conflict_marks_the_version_as_outdated(statuses: AssumedStatuses) -> None:
    assert not statuses.is_outdated(at_version("9"))
    statuses.record_conflict(at_version("10"))
    known = [statuses.is_outdated(at_version(version)) for version in ("9", "10", "11")]
    assert known == [True, True, False]


async def test_each_status_has_a_write_lock_of_its_own(statuses: AssumedStatuses) -> None:
    async with statuses.write_lock("one"):
        assert statuses.write_lock("one").locked()
        assert not statuses.write_lock("other").locked()
    assert not statuses.write_lock("one").locked()
