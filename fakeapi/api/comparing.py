"""Comparison of two histories: where they diverge, and how the final objects differ.

    async with cluster.fork() as fork:
        ...                                            # one policy here, another one there
        print(compare(cluster.history("pods"), fork.history("pods")))

Up to the point of divergence everything is equal, versions and UIDs included. After it, versions,
UIDs and times differ even for the same changes; the final objects are compared without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from fakeapi.api.changes import ObjectChange, ObjectHistory

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
        told = [f"equal for {self.same} changes; then here {self.one}, there {self.other}"]
        for label, names in (
            ("only here", self.only_one),
            ("only there", self.only_other),
            ("different", self.different),
        ):
            if names:
                told.append(f"{label}: {', '.join(names)}")
        return "\n".join(told)


def compare(one: ObjectHistory, other: ObjectHistory) -> HistoryComparison:
    """Compare two histories of the same kind."""
    pairs = list(zip_longest(one, other))
    same = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(pairs))
    ours, theirs = pairs[same] if same < len(pairs) else (None, None)
    here, there = _final_objects(one), _final_objects(other)
    return HistoryComparison(
        same,
        ours,
        theirs,
        only_one=[name for name in here if name not in there],
        only_other=[name for name in there if name not in here],
        different=[name for name in here if name in there and here[name] != there[name]],
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
