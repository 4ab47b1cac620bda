r"""Label and field selectors of a query.

:mod:`policies.kubernetes.selectors` parses label selectors. A field selector supports only ``=``,
``==`` and ``!=``; its values may escape ``\``, ``,`` and ``=`` by a backslash.

Source: k8s.io/apimachinery/pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Entry
from fakeapi.apiserver.wire.errors import bad_request
from policies.kubernetes import selectors
from policies.kubernetes.selectors import LabelSelector, SelectorError

_FIELD_TERM = re.compile(r"((?:[^\\!=]|\\.)*?)(!=|==|=)((?:[^\\]|\\.)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One requirement on a selectable field; ``index`` is its position in the kind's fields."""

    index: int
    value: str
    equal: bool

    def matches(self, entry: Entry) -> bool:
        """Return whether the entry matches."""
        return (entry.fields[self.index] == self.value) is self.equal


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """The entries of a kind that a request selects; an empty one selects all."""

    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: tuple[FieldRequirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels.requirements or self.fields)

    def matches(self, entry: Entry) -> bool:
        """Return whether the entry matches every requirement."""
        return all(f.matches(entry) for f in self.fields) and self.labels.matches(entry.labels)

    def only_name(self) -> str | None:
        """Return the only name that can match, or None."""
        return next((f.value for f in self.fields if f.index == 0 and f.equal), None)


def parse_selectors(kind: ResourceInfo, labels: str, fields: str) -> SelectionPredicate:
    """Compile both selectors of a request; raise StatusError (400) that names the invalid part."""
    return SelectionPredicate(parse_label_selector(labels), _parse_field_selector(kind, fields))


def parse_label_selector(text: str) -> LabelSelector:
    """Compile a label selector; raise StatusError (400)."""
    try:
        return selectors.parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


def _parse_field_selector(kind: ResourceInfo, text: str) -> tuple[FieldRequirement, ...]:
    names = [selectable.label for selectable in kind.fields]
    requirements = []
    for term in re.findall(r"(?:[^\\,]|\\.)+", text, re.DOTALL):
        match = _FIELD_TERM.fullmatch(term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        label, operator, value = match.groups()
        if label not in names:
            raise bad_request(f"field label not supported: {label}")
        index = names.index(label)
        requirements.append(FieldRequirement(index, _unescape(value), operator != "!="))
    return tuple(requirements)


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
