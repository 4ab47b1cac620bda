"""The history of the objects of one kind: invariants over it, and comparison with another history.

    pods = cluster.history("pods", "default")
    pods.always(lambda present: sum(map(is_down, present)) <= 2)

    async with cluster.fork() as fork:
        ...                                            # one policy here, another one there
        print(compare(cluster.history("pods"), fork.history("pods")))

A history begins where that of the store does: with the first write or, after a compaction, a reset
or a restore, with the state at that time (``before``). That state is checked, too.

Up to the point where two histories diverge everything is equal, versions and UIDs included. After
it, versions, UIDs and times differ even for the same changes; the final objects are compared
without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.store.object_store import Document, Entry, EventType, Store
from fakeapi.apiserver.wire.errors import bad_request

Predicate = Callable[[Collection[Document]], bool]


class InvariantError(AssertionError):
    """An invariant is violated; the message has the change and the objects after it."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One write; ``object`` is the object after it or, for a deletion, its last state."""

    version: int
    type: EventType
    object: Document

    def __str__(self) -> str:
        return f"version {self.version}: {self.type} {_object_key(self.object)}"

    def document(self) -> dict[str, Any]:
        """Return the change as JSON."""
        return {"version": self.version, "type": self.type, "object": self.object}


class ObjectHistory(Sequence[ObjectChange]):
    """Changes in the order of their versions, after the initial objects ``before``."""

    def __init__(self, before: Sequence[Document], changes: Sequence[ObjectChange]) -> None:
        self.before = before
        self._changes = changes

    def __len__(self) -> int:
        return len(self._changes)

    def __getitem__(self, index: Any) -> Any:
        return self._changes[index]

    def states(self) -> Iterator[Collection[Document]]:
        """Yield the initial objects, and the objects after each change."""
        present = {_object_key(thing): thing for thing in self.before}
        yield present.values()
        for change in self._changes:
            if change.type == "DELETED":
                present.pop(_object_key(change.object), None)
            else:
                present[_object_key(change.object)] = change.object
            yield present.values()

    def always(self, holds: Predicate) -> None:
        """Check that ``holds`` is true for every state; raise InvariantError."""
        for index, present in enumerate(self.states()):
            if not holds(present):
                when = f"after {self._changes[index - 1]}" if index else "in the beginning"
                names = ", ".join(map(_object_key, present)) or "nothing"
                raise InvariantError(f"it did not hold {when}; there was: {names}")


def find_kind(kinds: ResourceRegistry, resource: str) -> ResourceInfo:
    """Return the kind that kubectl would find for a word; raise StatusError (400).

    Kind, plural, singular and short names are accepted, also with the group, or with version and
    group (``deployments.apps``, ``deployments.v1.apps``).
    """
    word, _, group = resource.lower().partition(".")
    for kind in kinds.all:
        names = (kind.plural, kind.singular, kind.kind.lower(), *kind.short_names)
        if word in names and group in ("", kind.group, f"{kind.version}.{kind.group}"):
            return kind
    raise bad_request(f"no kind {resource!r} is served here")


def read_history(
    store: Store, kind: ResourceInfo, namespace: str = "", name: str = ""
) -> ObjectHistory:
    """Return the retained history of one object, of a namespace, or of a whole kind."""
    floor = store.floor(kind)

    def counts(entry: Entry) -> bool:
        space, _, own = entry.key.rpartition("/")
        return namespace in ("", space) and name in ("", own)

    before = [_versioned_document(kind, e) for e in store.entries_at(kind, floor) if counts(e)]
    changes = [
        ObjectChange(event.version, event.type, _versioned_document(kind, event.entry))
        for event in store.since(kind, floor)
        if counts(event.entry)
    ]
    return ObjectHistory(before, changes)


def _versioned_document(kind: ResourceInfo, entry: Entry) -> Document:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **entry.document()}


def _object_key(document: Document) -> str:
    metadata = document["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


_GENERATED_FIELDS: Final = frozenset(
    ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
)


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """The difference of two histories.

    ``same`` is the number of common changes; ``one`` and ``other`` are the next change of each
    history (None: no further change). ``only_one``, ``only_other`` and ``different`` name the final
    objects that are in one history only, or that differ.
    """

    same: int
    one: ObjectChange | None
    other: ObjectChange | None
    only_one: Sequence[str]
    only_other: Sequence[str]
    different: Sequence[str]

    @property
    def equal(self) -> bool:
        """Return whether both histories have the same changes."""
        return self.one is None and self.other is None

    def __str__(self) -> str:
        if self.equal:
            return f"equal: {self.same} changes"
        lines = [f"equal for {self.same} changes; then here {self.one}, there {self.other}"]
        for label, names in (
            ("only here", self.only_one),
            ("only there", self.only_other),
            ("different", self.different),
        ):
            if names:
                lines.append(f"{label}: {', '.join(names)}")
        return "\n".join(lines)


def compare(one: ObjectHistory, other: ObjectHistory) -> HistoryComparison:
    """Compare two histories of the same kind."""
    pairs = list(zip_longest(one, other))
    same = next(
        (i for i, (change, other_change) in enumerate(pairs) if change != other_change), len(pairs)
    )
    change, other_change = pairs[same] if same < len(pairs) else (None, None)
    first, second = _final_objects(one), _final_objects(other)
    return HistoryComparison(
        same,
        change,
        other_change,
        only_one=[name for name in first if name not in second],
        only_other=[name for name in second if name not in first],
        different=[name for name in first if name in second and first[name] != second[name]],
    )


def _final_objects(history: ObjectHistory) -> Mapping[str, Any]:
    """Return the final objects by namespace and name, without generated fields."""
    *_, last = history.states()
    return {_metadata_key(each["metadata"]): _without_generated_fields(each) for each in last}


def _metadata_key(metadata: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _without_generated_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in document["metadata"].items() if k not in _GENERATED_FIELDS}
    return {**document, "metadata": metadata}
