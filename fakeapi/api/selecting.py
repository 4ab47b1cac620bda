r"""Label and field selectors as query strings spell them.

A label selector is a list of requirements joined by commas, all of which must hold:

    app=web  app==web  app!=web  env in (prod,qa)  env notin (dev)  gpu  !gpu  size>3  size<9

A field selector knows only ``=``, ``==`` and ``!=``; its values may escape ``\``, ``,`` and ``=``
by a backslash.

Sources: k8s.io/apimachinery/pkg/labels/selector.go and pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fakeapi.api.errors import bad_request
from fakeapi.kinds import Kind
from fakeapi.store import Entry
from policies.selectors import LabelSelector, Requirement, SelectorError, node_requirement

_TOKEN = re.compile(r"\s*(==|!=|[!=<>(),]|[^\s!=<>(),]+)\s*")
_SYMBOLS = frozenset(("==", "!=", "!", "=", "<", ">", "(", ")", ","))
_COMPARISONS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS = {"in": "In", "notin": "NotIn"}
_FIELD_TERM = re.compile(r"((?:[^\\!=]|\\.)*?)(!=|==|=)((?:[^\\]|\\.)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One test of one selectable field, by its place in the kind's fields."""

    index: int
    value: str
    equal: bool

    def matches(self, entry: Entry) -> bool:
        """Tell whether the entry passes."""
        return (entry.fields[self.index] == self.value) is self.equal


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries of a kind a request is about; an empty one is about all."""

    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: tuple[FieldRequirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels.requirements or self.fields)

    def matches(self, entry: Entry) -> bool:
        """Tell whether the entry passes every requirement."""
        return all(f.matches(entry) for f in self.fields) and self.labels.matches(entry.labels)

    def name(self) -> str | None:
        """Give the only name that can match, or None."""
        return next((f.value for f in self.fields if f.index == 0 and f.equal), None)


def parse_selection(kind: Kind, labels: str, fields: str) -> Selection:
    """Compile both selectors of a request; raises StatusError (400) naming the part at fault."""
    return Selection(parse_label_selector(labels), _parse_field_selector(kind, fields))


def parse_label_selector(text: str) -> LabelSelector:
    """Compile a label selector; raises StatusError (400)."""
    try:
        return LabelSelector(_Parser(text).requirements())
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


class _Parser:
    """Reads requirements from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def requirements(self) -> tuple[Requirement, ...]:
        found: list[Requirement] = []
        while self._peek():
            found.append(self._requirement())
            if self._peek() == ",":
                self._take()
                if not self._peek():
                    raise SelectorError("found '', expected: identifier after ','")
            elif self._peek():
                raise SelectorError(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return tuple(found)

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return node_requirement(self._word(), "DoesNotExist", ())
        key = self._word()
        if self._peek() in ("", ","):
            return node_requirement(key, "Exists", ())
        operator = self._take()
        if operator in _COMPARISONS:
            return node_requirement(key, _COMPARISONS[operator], (self._value(),))
        if operator in _SETS:
            return node_requirement(key, _SETS[operator], self._values())
        raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _values(self) -> tuple[str, ...]:
        if self._take() != "(":
            raise SelectorError("expected: '(' after in or notin")
        values = [self._value()]
        while self._peek() == ",":
            self._take()
            values.append(self._value())
        if self._take() != ")":
            raise SelectorError("expected: ',' or ')' in a set of values")
        return tuple(values)

    def _value(self) -> str:
        return "" if self._peek() in ("", ",", ")") else self._word()

    def _word(self) -> str:
        token = self._take()
        if not token or token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


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
