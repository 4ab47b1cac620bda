"""A ledger as Parquet files, one of decisions and one of victims for each day (UTC).

They are in directories as Hive names them, which DuckDB, pandas and Spark read as one table with a
column ``day``::

    decisions/day=2026-11-27/part-0.parquet
    victims/day=2026-11-27/part-0.parquet

Whole days are written, so that a second export replaces files by files with at least as much of the
day. A file gets its name when it is complete. A thousand records are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import parquet

from extender.ledger.choice_cost import lost_work
from extender.ledger.entry import LedgerPod, LedgerRecord, VictimOutcome, first_id, format_id
from extender.ledger.storage.queries import NEWEST_ID, Ledger
from policies.kubernetes.input_error import InputError

DAY_NS: Final = 24 * 3600 * 10**9
_AT_ONCE: Final = 1_000
_FILE: Final = "part-0.parquet"
_PARTIAL: Final = f".{_FILE}.partial"  # readers skip names that begin with a point

_TEXT: Final = pa.string()
_NUMBER: Final = pa.int64()
_TIME: Final = pa.timestamp("us", "UTC")
_TEXTS: Final = pa.list_(_TEXT)
_AMOUNTS: Final = pa.map_(_TEXT, _NUMBER)
_POD: Final = (
    ("namespace", _TEXT),
    ("name", _TEXT),
    ("uid", _TEXT),
    ("priority", _NUMBER),
    ("priority_class", _TEXT),
    ("team", _TEXT),
    ("owner", _TEXT),
    ("requests", _AMOUNTS),
    ("run_seconds", _NUMBER),
)
DECISIONS: Final = pa.schema(
    [
        ("id", _TEXT),
        ("at", _TIME),
        ("verb", _TEXT),
        *_POD,
        ("node", _TEXT),
        ("decided_by", _TEXT),
        ("victims", _TEXTS),
        ("candidates", _NUMBER),
        ("num_pdb_violations", _NUMBER),
        ("violated_pdbs", _TEXTS),
        ("rejected", _AMOUNTS),
        ("message", _TEXT),
        ("fallback", _TEXT),
        ("policy", _TEXT),
        ("request_id", _TEXT),
        ("took_microseconds", _NUMBER),
        ("state", _TEXT),
        ("bound_node", _TEXT),
        ("ended_at", _TIME),
        ("entry", _TEXT),
    ]
)
"""The preemptor, the answer and the outcome; ``entry`` is the whole entry as JSON."""
VICTIMS: Final = pa.schema(
    [
        ("decision", _TEXT),
        ("at", _TIME),
        ("place", _NUMBER),
        *_POD,
        ("node", _TEXT),
        ("preemptor", _TEXT),
        ("lost_cpu", _NUMBER),
        ("lost_devices", _NUMBER),
        ("gone_at", _TIME),
        ("replacement", _TEXT),
        ("replacement_node", _TEXT),
        ("bound_at", _TIME),
    ]
)
"""``lost_cpu`` is in milliCPU by seconds, ``lost_devices`` in units of devices by seconds."""

_TABLES: Final = {"decisions": DECISIONS, "victims": VICTIMS}


class ExportError(InputError):
    """The files of an export cannot be written."""


class Exported(NamedTuple):
    """How many decisions of how many days were written."""

    decisions: int
    days: int


async def export_ledger(
    ledger: Ledger, directory: Path, since_ns: int = 0, until_ns: int | None = None
) -> Exported:
    """Write the days that have decisions, from that of one time to that of another.

    The times are nanoseconds since the epoch. Raise LedgerError and ExportError.
    """
    last = first_id(since_ns // DAY_NS * DAY_NS) - 1
    before = NEWEST_ID if until_ns is None else first_id(-(-until_ns // DAY_NS) * DAY_NS)
    decisions = days = 0
    files: _DayFiles | None = None
    try:
        while records := await ledger.records_after(last, before, _AT_ONCE):
            last = records[-1].entry.id
            decisions += len(records)
            for day, group in groupby(records, _day_of):
                if files is None or files.day != day:
                    if files is not None:
                        files.complete()
                    files = _DayFiles(directory, day)
                    days += 1
                files.write(list(group))
        if files is not None:
            files.complete()
    except OSError as error:
        raise ExportError(f"{directory}: cannot write: {error}") from None
    finally:
        if files is not None:
            files.discard()
    return Exported(decisions, days)


class _DayFiles:
    """The files of a day, which have no names before they are complete."""

    def __init__(self, directory: Path, day: str) -> None:
        self.day = day
        self._folders = {name: directory / name / f"day={day}" for name in _TABLES}
        self._writers: dict[str, parquet.ParquetWriter] = {}
        for name, folder in self._folders.items():
            folder.mkdir(parents=True, exist_ok=True)
            self._writers[name] = parquet.ParquetWriter(
                folder / _PARTIAL, _TABLES[name], compression="zstd"
            )

    def write(self, records: Sequence[LedgerRecord]) -> None:
        rows = {
            "decisions": [_decision(each) for each in records],
            "victims": [row for each in records for row in _victims(each)],
        }
        for name, schema in _TABLES.items():
            self._writers[name].write_batch(pa.RecordBatch.from_pylist(rows[name], schema))

    def complete(self) -> None:
        """Replace the files of an earlier export."""
        for name, folder in self._folders.items():
            self._writers[name].close()
            (folder / _PARTIAL).replace(folder / _FILE)

    def discard(self) -> None:
        """Delete what is not complete."""
        for writer in self._writers.values():
            writer.close()
        for folder in self._folders.values():
            (folder / _PARTIAL).unlink(missing_ok=True)


def _day_of(record: LedgerRecord) -> str:
    return datetime.fromtimestamp(record.entry.at_ns // 10**9, UTC).date().isoformat()


def _decision(record: LedgerRecord) -> Mapping[str, object]:
    entry, outcome = record.entry, record.outcome
    return {
        "id": format_id(entry.id),
        "at": _time(entry.at_ns),
        "verb": entry.verb,
        **_pod(entry.pod),
        "node": entry.node,
        "decided_by": entry.decided_by,
        "victims": [victim.key for victim in entry.victims],
        "candidates": entry.candidates,
        "num_pdb_violations": 0 if entry.chosen is None else entry.chosen.num_pdb_violations,
        "violated_pdbs": [] if entry.chosen is None else entry.chosen.violated_pdbs,
        "rejected": [*entry.rejected.items()],
        "message": entry.message,
        "fallback": entry.fallback,
        "policy": entry.policy,
        "request_id": entry.request_id,
        "took_microseconds": entry.took_microseconds,
        "state": outcome.state.value,
        "bound_node": outcome.node,
        "ended_at": _time(outcome.ended_ns),
        "entry": msgspec.json.encode(entry).decode(),
    }


def _victims(record: LedgerRecord) -> Iterator[Mapping[str, object]]:
    entry = record.entry
    outcomes = chain(record.outcome.victims, repeat(VictimOutcome()))
    for place, (victim, outcome) in enumerate(zip(entry.victims, outcomes, strict=False)):
        lost_cpu, lost_devices = lost_work(victim)
        yield {
            "decision": format_id(entry.id),
            "at": _time(entry.at_ns),
            "place": place,
            **_pod(victim),
            "node": entry.node,
            "preemptor": entry.pod.key,
            "lost_cpu": lost_cpu,
            "lost_devices": lost_devices,
            "gone_at": _time(outcome.gone_ns),
            "replacement": outcome.replacement,
            "replacement_node": outcome.node,
            "bound_at": _time(outcome.bound_ns),
        }


def _pod(pod: LedgerPod) -> Mapping[str, object]:
    fields = msgspec.structs.asdict(pod)
    return fields | {"requests": [*pod.requests.items()]}


def _time(at_ns: int) -> int | None:
    """Return the microseconds of a time since the epoch, or None if it is not known."""
    return at_ns // 1000 or None
