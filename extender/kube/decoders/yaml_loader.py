"""The YAML loader of all files: safe, and bounded before a document is built.

An alias repeats a part of the document, and that part may hold aliases as well. So a file of 1 KiB
can stand for billions of values, and merge keys (``<<``) copy them already while the document is
built. Documents are built recursively in C, so that deep nesting would end the process. Therefore
the events of the parser are measured first. Go's YAML decoder, which Kubernetes uses, has bounds
for the same reasons. A scalar that its tag does not fit, such as a number of thousands of digits,
is an error of its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml.constructor import SafeConstructor
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

MAX_ALIASED_NODES: Final = 100_000
"""The number of nodes that the aliases of a file may stand for, all together."""
MAX_DEPTH: Final = 500


class BoundedLoader(yaml.CSafeLoader):
    """A safe loader. Raises YAMLError, with the line, for a file that is beyond the bounds."""

    def __init__(self, stream: str | bytes) -> None:
        measure = _Measure()
        for event in yaml.parse(stream, Loader=yaml.CSafeLoader):
            measure.add(event)
        super().__init__(stream)


def _construct(tag: str) -> Callable[[BoundedLoader, yaml.Node], object]:
    construct = SafeConstructor.yaml_constructors[tag]

    def construct_or_refuse(loader: BoundedLoader, node: yaml.Node) -> object:
        try:
            found = construct(loader, node)
            if isinstance(found, int):
                str(found)  # Python does not print thousands of digits
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            name = tag.rpartition(":")[2]
            raise _error(f"a value that is no {name}", node) from None
        return found

    return construct_or_refuse


for _tag in (f"tag:yaml.org,2002:{_name}" for _name in ("bool", "float", "int", "timestamp")):
    BoundedLoader.add_constructor(_tag, _construct(_tag))


def load_document(text: str | bytes) -> Any:
    """Return the only document of a text, None if it is empty. Raise YAMLError."""
    return BoundedLoader(text).get_single_data()


class _Measure:
    """Measures the nodes of a stream from its events; anchors of one document suffice for all."""

    def __init__(self) -> None:
        self._open: list[str | None] = []  # the anchors of the open collections
        self._sizes = [0]  # of the stream, and of each open collection: the nodes within
        self._anchored: dict[str | None, int] = {}
        self._aliased = 0

    def add(self, event: yaml.Event) -> None:
        """Add an event. Raise YAMLError beyond the bounds."""
        match event:
            case CollectionStartEvent():
                self._open.append(event.anchor)
                self._sizes.append(1)
                if len(self._open) > MAX_DEPTH:
                    raise _error(f"nested more than {MAX_DEPTH} levels deep", event)
            case CollectionEndEvent():
                self._add_node(self._open.pop(), self._sizes.pop())
            case AliasEvent():
                self._add_alias(event)
            case NodeEvent():
                self._add_node(event.anchor, 1)

    def _add_alias(self, event: AliasEvent) -> None:
        if event.anchor in self._open:
            raise _error(f"the alias *{event.anchor} stands for what contains it", event)
        size = self._anchored.get(event.anchor, 0)
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            raise _error(f"aliases stand for more than {MAX_ALIASED_NODES:,} nodes", event)
        self._sizes[-1] += size

    def _add_node(self, anchor: str | None, size: int) -> None:
        self._sizes[-1] += size
        if anchor is not None:
            self._anchored[anchor] = size


def _error(problem: str, place: yaml.Event | yaml.Node) -> yaml.YAMLError:
    line = "" if place.start_mark is None else f" in line {place.start_mark.line + 1}"
    return yaml.YAMLError(f"{problem}{line}")
