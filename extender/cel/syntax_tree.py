"""The syntax tree of a CEL expression, with macros expanded as cel-go expands them.

``at`` is the offset of a node in the source, which errors point to: that of the operator, of the
dot of a selection, of the bracket of a call; for a node that a macro adds, that of the macro.

Source: github.com/google/cel-go/common/ast/expr.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Constant: TypeAlias = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant; ``type_name`` is its type as messages print it."""

    at: int
    type_name: str
    value: Constant


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A variable, or the first part of a qualified name."""

    at: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A field of an operand; with ``tests``, whether the field is present."""

    at: int
    operand: Node
    field: str
    tests: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a function or of an operator; ``target`` is the receiver of a method."""

    at: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral:
    """A list; ``optional`` are the indices of its optional elements."""

    at: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral:
    """A map; ``optional`` are the indices of its optional entries."""

    at: int
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class FieldInitializer:
    """A field of a message literal; ``at`` is the offset of its colon."""

    at: int
    name: str
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class MessageLiteral:
    """A message; ``optional`` are the indices of its optional fields."""

    at: int
    name: str
    fields: tuple[FieldInitializer, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension:
    """A fold over a list or a map, which a macro expands to; ``second`` is "" with one variable."""

    at: int
    operand: Node
    first: str
    second: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = (
    Literal | Name | Selection | Call | ListLiteral | MapLiteral | MessageLiteral | Comprehension
)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    match node:
        case Selection():
            return (node.operand,)
        case Call():
            return node.arguments if node.target is None else (node.target, *node.arguments)
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(each for entry in node.entries for each in entry)
        case MessageLiteral():
            return tuple(each.value for each in node.fields)
        case Comprehension():
            return (node.operand, node.initial, node.condition, node.step, node.result)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    yield node
    for below in children(node):
        yield from walk(below)
