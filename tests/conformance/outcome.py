"""The outcome of a scenario, without all that differs from run to run.

For each step, up to the moment when the world had settled:

- the *objects* that there were, events among them, as a multiset;
- the *writes* of the controller, as a multiset: verb, resource, media type, body, answer;
- the *statuses* that it wrote, ReplicaSet by ReplicaSet. How often a status is written while pods
  come and go depends on which watch event arrives when. What does not: how it begins and ends to
  tell of trouble, of which generation it speaks, and what it says in the end.

Taken out are UIDs (replaced by whose they are), generated names, versions and times. Of objects
``managedFields`` are not compared: they name the program. Of bodies, neither is what Go writes of
every value of a type, and what says nothing: an empty status of a pod that is to be made, no time
and no instance in an event, and of which kind the options of a delete are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.testing.request_log import RequestRecord
from tests.conformance.objects import Document
from tests.conformance.world import AGENT, WITNESSES

_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_STATUS: Final = re.compile(r".*/replicasets/[^/]+/status")
_WITNESS_EVENT: Final = f"/api/v1/namespaces/{WITNESSES}/events"
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_VERSION: Final = re.compile(r'("resourceVersion":)"\d+"')
_GENERATED: Final = re.compile(r"[\w.-]+-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_EVENT_NAME: Final = re.compile(r"\b([\w-]+)\.[0-9a-f]{16}\b")


@dataclass(frozen=True, slots=True)
class Step:
    """The objects once the world was idle, and the controller's writes until then."""

    objects: Counter[str]
    writes: Counter[str]
    statuses: Mapping[str, Sequence[str]]

    def lines(self, number: int) -> Iterator[str]:
        """Write the step down, sorted; ``number`` is its place in the scenario."""
        for name, counted in (("object", self.objects), ("write", self.writes)):
            for what, times in sorted(counted.items()):
                yield f"{number} {name} {times} of {what}"
        for uid, story in sorted(self.statuses.items()):
            yield from (f"{number} status of {uid}: {turn}" for turn in story)


class Normaliser:
    """Takes out of documents and paths what no two runs share.

    ``owners`` tells of every UID whose it is, ``generated`` of every name that a server has made
    what it begins with.
    """

    def __init__(self, owners: Mapping[str, str], generated: Mapping[str, str]) -> None:
        self._owners = owners
        self._generated = generated

    def text(self, text: str) -> str:
        """Normalise a text."""
        text = _UID.sub(lambda found: f"<uid of {self._owners.get(found[0], 'nobody')}>", text)
        text = _GENERATED.sub(self._name, text)
        text = _TIME.sub("<time>", text)
        text = _EVENT_NAME.sub(r"\1.<stamp>", text)
        return _VERSION.sub(r'\1"<version>"', text)

    def document(self, document: Any) -> str:
        """Normalise a document, and write it down with sorted keys."""
        return self.text(orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode())

    def _name(self, found: re.Match[str]) -> str:
        prefix = self._generated.get(found[0])
        return found[0] if prefix is None else f"{prefix}<suffix>"


def outcome(
    records: Iterable[RequestRecord],
    moments: Sequence[Sequence[Document]],
    normaliser: Normaliser,
) -> list[Step]:
    """Return the outcome of a scenario by steps; ``moments`` are the objects after each."""
    steps = _steps(records)
    assert len(steps) == len(moments), "as many witnesses as moments"
    return [
        Step(
            Counter(normaliser.document(_without_managers(thing)) for thing in things),
            Counter(_written(record, normaliser) for record in records if not _is_status(record)),
            _statuses(filter(_is_status, records), things, normaliser),
        )
        for things, records in zip(moments, steps, strict=True)
    ]


def _steps(records: Iterable[RequestRecord]) -> list[list[RequestRecord]]:
    """Return the controller's writes of each step; the event about its last witness ends it."""
    steps: dict[str, list[RequestRecord]] = {}
    current: list[RequestRecord] = []
    for record in records:
        if record.user_agent == AGENT or record.method not in _WRITES:
            continue
        if record.path == _WITNESS_EVENT and record.method == "POST":
            witness: str = record.decoded_body()["involvedObject"]["name"]
            steps.setdefault(witness.rpartition("-")[2], []).extend(current)
            current = []
        elif f"/namespaces/{WITNESSES}/" not in record.path:
            current.append(record)
    return list(steps.values())


def _is_status(record: RequestRecord) -> bool:
    return _STATUS.fullmatch(record.path) is not None


def _written(record: RequestRecord, normaliser: Normaliser) -> str:
    query = f"?{record.query}" if record.query else ""
    head = f"{record.method} {normaliser.text(record.path)}{query} → {record.status}"
    if not record.body:
        return head
    body = normaliser.document(_without_blanks(record.decoded_body()))
    return f"{head} {record.content_type} {body}"


def _statuses(
    records: Iterable[RequestRecord], things: Iterable[Document], normaliser: Normaliser
) -> Mapping[str, Sequence[str]]:
    """Return the writes about the ReplicaSets that still exist."""
    told: dict[str, list[Document]] = {
        thing["metadata"]["uid"]: [] for thing in things if thing["kind"] == "ReplicaSet"
    }
    for record in records:
        body = record.decoded_body()
        if record.status == 200 and body["metadata"]["uid"] in told:
            told[body["metadata"]["uid"]].append(body)
    return {normaliser.text(uid): _story(each, normaliser) for uid, each in told.items() if each}


def _story(bodies: Sequence[Document], normaliser: Normaliser) -> Sequence[str]:
    """Return the generations and conditions of statuses without repetitions; the last one whole."""
    turns: list[str] = []
    for body in bodies:
        status = body["status"]
        said = {name: status.get(name) for name in ("observedGeneration", "conditions")}
        turn = normaliser.document(said)
        if turns[-1:] != [turn]:
            turns.append(turn)
    return [*turns, normaliser.document(_without_managers(bodies[-1]))]


_BLANKS: Final[tuple[tuple[str, object], ...]] = (
    ("status", {}),
    ("eventTime", None),
    ("reportingInstance", ""),
    ("kind", "DeleteOptions"),
)


def _without_blanks(body: Document) -> Document:
    said = {name: value for name, value in body.items() if (name, value) not in _BLANKS}
    return {} if said == {"apiVersion": "v1"} else said


def _without_managers(thing: Document) -> Document:
    metadata = {key: it for key, it in thing["metadata"].items() if key != "managedFields"}
    return {**thing, "metadata": metadata}
