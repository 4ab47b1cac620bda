"""JSONPath, as custom resources define their columns by it.

    .spec.size   .metadata.labels['a.b/c']   .items[0].name   .items[-1]   .items[1:3]
    .items[*].name   ..image   .conditions[?(@.type=="Ready")].status

Source: k8s.io/client-go/util/jsonpath.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

PathStep = Callable[[Any], Iterable[Any]]
JsonPath = Callable[[Any], list[Any]]

_NAME: Final = re.compile(r"(?:\\.|[^\[\].\\])+")
_TEXT: Final = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)
_INDEX: Final = r"-?\d{1,18}"  # Go's int has 64 bits
_SLICE: Final = re.compile(rf"({_INDEX})?:({_INDEX})?(?::({_INDEX})?)?", re.ASCII)
_FILTER: Final = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+)", re.DOTALL)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class JsonPathError(ValueError):
    """A text is not a valid JSONPath."""


@lru_cache(maxsize=4096)
def compile_path(text: str) -> JsonPath:
    """Compile a path; raise JsonPathError."""
    steps = list(_steps(text))

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [below for each in found for below in step(each)]
        return found

    return find


def _steps(text: str) -> Iterator[PathStep]:
    position = 0
    while position < len(text):
        if text.startswith("..", position):
            yield _descendants
            position += 1 if text.startswith("..[", position) is False else 2
        if text.startswith("[", position):
            end = _closing(text, position)
            yield _bracket(text[position + 1 : end].strip())
            position = end + 1
        elif text.startswith(".", position):
            match = _NAME.match(text, position + 1)
            position += 1
            if match is not None:
                yield _field(re.sub(r"\\(.)", r"\1", match[0]))
                position = match.end()
        else:
            raise JsonPathError(f"unrecognized path {text!r} at {position}")


def _closing(text: str, start: int) -> int:
    depth, index = 0, start
    while index < len(text):
        quoted = _TEXT.match(text, index)
        if quoted is not None:
            index = quoted.end()
            continue
        depth += (text[index] == "[") - (text[index] == "]")
        if depth == 0:
            return index
        index += 1
    raise JsonPathError(f"unterminated array in {text!r}")


def _bracket(inside: str) -> PathStep:
    if inside == "*":
        return _children
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1].strip())
    if match := _TEXT.fullmatch(inside):
        return _field(re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2]))
    if match := _SLICE.fullmatch(inside):
        start, end, step = (int(part) if part else None for part in match.groups())
        if step is not None and step < 1:  # client-go refuses it when it prints a value
            return lambda _value: ()
        return lambda value: value[start:end:step] if isinstance(value, list) else ()
    if re.fullmatch(_INDEX, inside, re.ASCII):
        return _element(int(inside))
    if "," in inside:
        parts = [_bracket(part.strip()) for part in inside.split(",")]
        return lambda value: [below for part in parts for below in part(value)]
    raise JsonPathError(f"invalid array index {inside!r}")


def _field(name: str) -> PathStep:
    if name == "*":
        return _children
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _element(index: int) -> PathStep:
    def step(value: Any) -> Iterable[Any]:
        inside = isinstance(value, list) and -len(value) <= index < len(value)
        return (value[index],) if inside else ()

    return step


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for below in _children(value):
        yield from _descendants(below)


def _filter(condition: str) -> PathStep:
    match = _FILTER.fullmatch(condition)
    if match is None:
        exists = _operand(condition)
        return lambda value: [item for item in _children(value) if exists(item)]
    left, compare, right = _operand(match[1]), _COMPARE[match[2]], _operand(match[3])

    def passes(item: Any) -> bool:
        one, two = left(item), right(item)
        try:
            return bool(one and two and compare(one[0], two[0]))
        except TypeError:
            return False

    return lambda value: [item for item in _children(value) if passes(item)]


def _operand(text: str) -> JsonPath:
    text = text.strip()
    if text.startswith("@"):
        return compile_path(text[1:])
    if match := _TEXT.fullmatch(text):
        literal: Any = match[1] if match[1] is not None else match[2]
    elif text in ("true", "false"):
        literal = text == "true"
    else:
        try:
            literal = float(text) if "." in text else int(text)
        except ValueError:
            raise JsonPathError(f"unrecognized operand {text!r}") from None
    return lambda _item: [literal]
