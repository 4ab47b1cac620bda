"""Label selectors in text form (labels.Parse): in queries, and in the scale of a workload.

The text is a list of requirements separated by commas, all of which must hold:

    app=web  app==web  app!=web  env in (prod,qa)  env notin (dev)  gpu  !gpu  size>3  size<9

Source: k8s.io/apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re

from policies.selectors import LabelSelector, Requirement, SelectorError, node_requirement

_TOKEN = re.compile(r"\s*(==|!=|[!=<>(),]|[^\s!=<>(),]+)\s*")
_SYMBOLS = frozenset(("==", "!=", "!", "=", "<", ">", "(", ")", ","))
_COMPARISONS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS = {"in": "In", "notin": "NotIn"}


def parse_label_selector(text: str) -> LabelSelector:
    """Compile a label selector; an empty one matches everything. Raise SelectorError if invalid."""
    return LabelSelector(SelectorParser(text).requirements())


class SelectorParser:
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
