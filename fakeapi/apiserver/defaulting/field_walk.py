"""Field walks: the places of a kind's documents that have rules, found once from its type.

A field walk follows the structs of a type and holds the rules of each. It contains only paths that
lead to a rule, so other parts of a document are not visited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import ListType, Struct, Type, schema_of

_PREFIX: Final = "io.k8s.api."

S = TypeVar("S")


@dataclass(slots=True)
class FieldWalk(Generic[S]):
    """The rules of one object, and the fields to visit below it."""

    rules: list[S] = field(default_factory=list)
    objects: list[tuple[str, FieldWalk[S]]] = field(default_factory=list)
    lists: list[tuple[str, FieldWalk[S]]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rules or self.objects or self.lists)


def build_field_walk(
    kind: ResourceInfo, rules_at: Callable[[str], list[S]], fields: Collection[str] | None = None
) -> FieldWalk[S]:
    """Return the field walk of a kind.

    ``rules_at`` returns the rules of a definition, by upstream's name without the common prefix
    (``core.v1.PodSpec``). ``fields`` limits the field walk to these top-level fields.
    """
    shape = schema_of(kind)
    if not isinstance(shape, Struct):
        return FieldWalk()
    plans: dict[str, FieldWalk[S]] = {}
    root = FieldWalkBuilder(rules_at, plans).root(shape, shape.fields if fields is None else fields)
    for _ in plans:  # removing one empty path may leave another one empty
        for each in (root, *plans.values()):
            each.objects = [(name, below) for name, below in each.objects if below]
            each.lists = [(name, below) for name, below in each.lists if below]
    return root


@dataclass(frozen=True, slots=True)
class FieldWalkBuilder(Generic[S]):
    """Builds field walks; ``walks`` holds those of the structs met so far, by the struct's name."""

    rules_at: Callable[[str], list[S]]
    walks: dict[str, FieldWalk[S]]

    def root(self, shape: Struct, fields: Collection[str]) -> FieldWalk[S]:
        """Return the field walk of a kind's own struct, limited to ``fields``."""
        plan = self._empty(shape)
        self._add_fields(plan, shape, fields)
        return plan

    def _struct(self, shape: Struct) -> FieldWalk[S]:
        walk = self.walks.get(shape.name)
        if walk is None:  # registered before it is filled: a type may contain itself
            walk = self.walks[shape.name] = self._empty(shape)
            self._add_fields(walk, shape, shape.fields)
        return walk

    def _empty(self, shape: Struct) -> FieldWalk[S]:
        return FieldWalk(self.rules_at(shape.name.removeprefix(_PREFIX)))

    def _add_fields(self, plan: FieldWalk[S], shape: Struct, fields: Collection[str]) -> None:
        for name, below in shape.fields.items():
            if name in fields:
                self._extend(plan, name, below.type)

    def _extend(self, plan: FieldWalk[S], name: str, below: Type) -> None:
        if isinstance(below, Struct):
            plan.objects.append((name, self._struct(below)))
        elif isinstance(below, ListType) and isinstance(below.element, Struct):
            plan.lists.append((name, self._struct(below.element)))
