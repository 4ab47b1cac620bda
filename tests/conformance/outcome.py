"""The outcome of a scenario, without the details that differ from run to run.

For each step, until the cluster has settled:

- the *objects*, including events, as a multiset;
- the *writes* of the controller, as a multiset: verb, resource, media type, body, answer;
- the *statuses* that it wrote, by ReplicaSet. How often a status is written while pods are created
  and deleted depends on the order of watch events. Its conditions, its observed generations, and
  the last status do not.

UIDs are replaced by the names of their objects; generated names, versions and times are removed.
``managedFields`` of objects are not compared: they name the program. Neither are fields of bodies
that Go writes for every value of a type, and that mean nothing: the empty status of a new pod, the
missing time and instance of an event, and the kind of a delete's options.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import orjson

from fakeapi.apiserver.testing.request_log import RequestRecord
from tests.builders import Document
from tests.conformance.clusters.world import AGENT, MARKERS

_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_STATUS: Final = re.compile(r".*/replicasets/[^/]+/status")
_MARKER_EVENT: Final = f"/api/v1/namespaces/{MARKERS}/events"
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_VERSION: Final = re.compile(r'("resourceVersion":)"\d+"')
_GENERATED: Final = re.compile(r"[\w.-]+-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_EVENT_NAME: Final = re.compile(r"\b([\w-]+)\.[0-9a-f]{16}\b")


@dataclass(frozen=True, slots=True)
class Step:
    """The objects once the cluster was idle, and the controller's writes until then."""

    objects: Counter[str]
    writes: Counter[str]
    statuses: Mapping[str, Sequence[str]]

    def lines(self, number: int) -> Iterator[str]:
        """Return the step as sorted lines; ``number`` is its place in the scenario."""
        for name, counted in (("object", self.objects), ("write", self.writes)):
            for what, times in sorted(counted.items()):
                yield f"{number} {name} {times} of {what}"
        for uid, statuses in sorted(self.statuses.items()):
            yield from (f"{number} status of {uid}: {status}" for status in statuses)


class Normaliser:
    """Removes the parts of documents and paths that differ from run to run.

    ``owners`` maps UIDs to the names of their objects, ``generated`` generated names to prefixes.
    """

    def __init__(self, owners: Mapping[str, str], generated: Mapping[str, str]) -> None:
        self._owners = owners
        self._generated = generated

    def text(self, text: str) -> str:
        """Normalise a text."""
        text = _UID.sub(lambda found: f"<uid of {self._owners.get(found[0], 'no object')}>", text)
        text = _GENERATED.sub(self._name, text)
        text = _TIME.sub("<time>", text)
        text = _EVENT_NAME.sub(r"\1.<stamp>", text)
        return _VERSION.sub(r'\1"<version>"', text)

    def document(self, document: Any) -> str:
        """Return a normalised document as JSON with sorted keys."""
        return self.text(orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode())

    def _name(self, found: re.Match[str]) -> str:
        prefix = self._generated.get(found[0])
        return found[0] if prefix is None else f"{prefix}<suffix>"


def outcome(
    records: Iterable[RequestRecord], moments: Sequence[Sequence[Document]], normaliser: Normaliser
) -> list[Step]:
    """Return the outcome of a scenario by steps; ``moments`` are the objects after each."""
    steps = _steps(records)
    assert len(steps) == len(moments), "as many markers as moments"
    return [
        Step(
            Counter(normaliser.document(_without_managers(thing)) for thing in things),
            Counter(_written(record, normaliser) for record in records if not _is_status(record)),
            _statuses(filter(_is_status, records), things, normaliser),
        )
        for things, records in zip(moments, steps, strict=True)
    ]


def _steps(records: Iterable[RequestRecord]) -> list[list[RequestRecord]]:
    """Return the controller's writes of each step; the event about its last marker ends it."""
    steps: dict[str, list[RequestRecord]] = {}
    current: list[RequestRecord] = []
    for record in records:
        if record.user_agent == AGENT or record.method not in _WRITES:
            continue
        if record.path == _MARKER_EVENT and record.method == "POST":
            marker: str = record.decoded_body()["involvedObject"]["name"]
            steps.setdefault(marker.rpartition("-")[2], []).extend(current)
            current = []
        elif f"/namespaces/{MARKERS}/" not in record.path:
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
    written: dict[str, list[Document]] = {
        thing["metadata"]["uid"]: [] for thing in things if thing["kind"] == "ReplicaSet"
    }
    for record in records:
        body = record.decoded_body()
        if record.status == 200 and body["metadata"]["uid"] in written:
            written[body["metadata"]["uid"]].append(body)
    return {
        normaliser.text(uid): _summary(each, normaliser) for uid, each in written.items() if each
    }


def _summary(bodies: Sequence[Document], normaliser: Normaliser) -> Sequence[str]:
    """Return the generations and conditions of statuses without repetitions, and the last body."""
    compared = (
        {name: body["status"].get(name) for name in ("observedGeneration", "conditions")}
        for body in bodies
    )
    statuses = [status for status, _ in groupby(map(normaliser.document, compared))]
    return [*statuses, normaliser.document(_without_managers(bodies[-1]))]


_BLANKS: Final[tuple[tuple[str, object], ...]] = (
    ("status", {}),
    ("eventTime", None),
    ("reportingInstance", ""),
    ("kind", "DeleteOptions"),
)


def _without_blanks(body: Document) -> Document:
    fields = {name: value for name, value in body.items() if (name, value) not in _BLANKS}
    return {} if fields == {"apiVersion": "v1"} else fields


def _without_managers(thing: Document) -> Document:
    metadata = {key: it for key, it in thing["metadata"].items() if key != "managedFields"}
    return {**thing, "metadata": metadata}
