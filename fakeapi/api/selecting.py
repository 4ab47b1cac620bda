r"""Label and field selectors as query strings spell them.

How label selectors are read stands in :mod:`policies.selector_texts`. A field selector knows only
``=``, ``==`` and ``!=``; its values may escape ``\``, ``,`` and ``=`` by a backslash.

Source: k8s.io/apimachinery/pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fakeapi.api.errors import bad_request
from fakeapi.kinds import Kind
from fakeapi.store import Entry
from policies import selector_texts
from policies.selectors import LabelSelector, SelectorError

_FIELD_TERM = re.compile(r"((?:[^\\!=]|\\.)*?)(!=|==|=)((?:[^\\]|\\.)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One test of one selectable field, by its place in the kind's fields."""

    index: int
    value: str
    equal: bool

    def matches(self, entry: Entry) -> bool:
        """Return whether the entry passes."""
        return (entry.fields[self.index] == self.value) is self.equal


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries of a kind a request is about; an empty one is about all."""

    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: tuple[FieldRequirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels.requirements or self.fields)

    def matches(self, entry: Entry) -> bool:
        """Return whether the entry passes every requirement."""
        return all(f.matches(entry) for f in self.fields) and self.labels.matches(entry.labels)

    def name(self) -> str | None:
        """Return the only name that can match, or None."""
        return next((f.value for f in self.fields if f.index == 0 and f.equal), None)


def parse_selection(kind: Kind, labels: str, fields: str) -> Selection:
    """Compile both selectors of a request; raises StatusError (400) naming the part at fault."""
    return Selection(parse_label_selector(labels), _parse_field_selector(kind, fields))


def parse_label_selector(text: str) -> LabelSelector:
    """Compile a label selector; raises StatusError (400)."""
    try:
        return selector_texts.parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


def _parse_field_selector(kind: Kind, text: str) -> tuple[FieldRequirement, ...]:
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
