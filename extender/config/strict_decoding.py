"""Strict decoding of a configuration file, which reports all errors, not only the first.

msgspec stops at the first error. So the invalid field is removed from the document, and decoding is
retried until no error is left. In place of a missing text, object or constant, there is a
placeholder, so that the rest of its object is decoded. The remaining document is decoded as well,
so that one error does not hide another. A document without any known field has a single error: it
is of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from extender.config.source_document import FieldPath, FieldProblem, format_path, parse_path
from policies.kubernetes.input_error import InputError, similar_name

T = TypeVar("T")

_UNKNOWN = re.compile(r"Object contains unknown field (.*)")
_MISSING = re.compile(r"Object missing required field (.*)")
_LENGTH = re.compile(r"Expected (?:array|object) of length .*")
MAX_ERRORS = 100
"""No more errors are looked for then, since each takes another decoding of the document."""
_ANY_KEY = "[...]"
"""What msgspec writes for any key of a mapping."""
_PYTHON_TYPES: Mapping[type[inspect.Type], tuple[type, ...]] = {
    inspect.BoolType: (bool,),
    inspect.FloatType: (int, float),
    inspect.StrType: (str,),
}


class ConfigError(InputError, ValueError):
    """A configuration, a policy or an option is invalid."""


@dataclass(frozen=True, slots=True)
class StrictResult(Generic[T]):
    """The decoded value (None if nothing is valid), and its errors.

    ``removed`` are the invalid fields of the document, which the value does not have.
    """

    value: T | None
    errors: tuple[FieldProblem, ...]
    removed: frozenset[FieldPath] = frozenset()

    @property
    def invalid_fields(self) -> frozenset[str]:
        """The top-level fields of the document that have errors."""
        return frozenset(str(path[0]) for path in self.removed)

    def original_path(self, path: FieldPath) -> FieldPath:
        """Return the path in the document of a field of the value."""
        return _original_path(path, self.removed)

    def is_valid(self, path: FieldPath) -> bool:
        """Return whether a field of the value is as the document has it."""
        original = self.original_path(path)
        return not any(each[: len(path)] == original for each in self.removed)

    def has_all_elements(self, path: FieldPath) -> bool:
        """Return whether a list of the value has all elements that the document has."""
        return not any(True for _ in _removed_elements(self.original_path(path), self.removed))


def decode_strictly(document: object, kind: type[T]) -> StrictResult[T]:
    """Convert a document to a struct, and collect all errors in the order they are found."""
    decoder = _StrictDecoder(document, kind)
    value: T | None = None
    is_decoded = False
    while not is_decoded:
        try:
            value = msgspec.convert(decoder.document, kind)
            is_decoded = True
        except msgspec.ValidationError as error:
            is_decoded = not decoder.correct(str(error).replace("`", ""))
        if len(decoder.errors) >= MAX_ERRORS:
            decoder.errors.append(FieldProblem((), "(the document): there may be more errors"))
            is_decoded = True
    return StrictResult(value, tuple(decoder.errors), frozenset(decoder.removed))


class _StrictDecoder:
    """A document, and the fields removed from it; paths are those of the original."""

    def __init__(self, document: object, kind: type) -> None:
        self.document: Any = document
        self.errors: list[FieldProblem] = []
        self.removed: set[FieldPath] = set()
        self._type = inspect.type_info(kind)
        self._filled: set[FieldPath] = set()

    def correct(self, error: str) -> bool:
        """Record an error, and remove the invalid field; False if that is the whole document."""
        problem, _, place = error.partition(" - at ")
        field = place.removeprefix("key in ").removeprefix("$").removeprefix(".")
        path = parse_path(field.removesuffix(_ANY_KEY))
        if field.endswith(_ANY_KEY):
            path += self._invalid_key(path)
        unknown, missing = _UNKNOWN.fullmatch(problem), _MISSING.fullmatch(problem)
        if unknown is not None and not path and self._is_other_kind():
            names = ", ".join(map(str, self.document))
            self._record(path, f"{problem.removesuffix(unknown[1])}{names}", unknown[1])
            return False
        if missing is not None:
            return self._add_missing(path, missing[1], problem)
        self._record(path, problem, unknown[1] if unknown else "")
        return self._remove((*path, self._written_name(path, unknown[1])) if unknown else path)

    def _record(self, path: FieldPath, problem: str, unknown: str) -> None:
        original = _original_path(path, self.removed)
        is_shortened = any(each[: len(original)] == original for each in self.removed)
        if self._is_recorded(original) or (is_shortened and _LENGTH.fullmatch(problem)):
            return
        text = f"{format_path(original)}: {problem}{self._allowed_text(path, unknown)}"
        written = (self._written_name(path, unknown),) if unknown else ()
        self.errors.append(FieldProblem((*original, *written), text))

    def _invalid_key(self, path: FieldPath) -> FieldPath:
        """Return the first key of a mapping whose value is not of its type, as a path."""
        kind = _type_at(self._type, self.document, path)
        if not isinstance(kind, inspect.DictType):
            return ()
        expected = _PYTHON_TYPES.get(type(_unwrapped_type(kind.value_type, None)), ())
        items = dict(_value_at(self.document, path)).items()
        return next(((key,) for key, value in items if type(value) not in expected), ())

    def _is_recorded(self, path: FieldPath) -> bool:
        return any(path[: len(each)] == each for each in self.removed)

    def _add_missing(self, path: FieldPath, name: str, problem: str) -> bool:
        """Record a missing field, and add a placeholder for it, or else remove its object."""
        original = _original_path(path, self.removed)
        field = (*original, name)
        if not self._is_recorded(field):
            self.errors.append(FieldProblem(original, f"{format_path(original)}: {problem}"))
        placeholder = _placeholder(_type_at(self._type, self.document, path), name)
        if placeholder is None or field in self._filled:
            return self._remove(path)
        self._filled.add(field)
        self.removed.add(field)
        self.document = _with_field(self.document, (*path, name), placeholder)
        return True

    def _remove(self, path: FieldPath) -> bool:
        if not path:
            return False
        self.removed.add(_original_path(path, self.removed))
        self.document = _without(self.document, path)
        return True

    def _written_name(self, path: FieldPath, name: str) -> str:
        """Return the name of a field as it is written: messages have no backticks."""
        holder = _value_at(self.document, path)
        names = map(str, holder) if isinstance(holder, Mapping) else ()
        return next((each for each in names if each.replace("`", "") == name), name)

    def _is_other_kind(self) -> bool:
        """Return whether no field of the document is known, so that it is of another kind."""
        known = frozenset(_allowed_names(self._type, self.document, ()))
        return not self.removed and known.isdisjoint(self.document)

    def _allowed_text(self, path: FieldPath, written: str) -> str:
        """Return the allowed names at a path for an error message, "" if there are none.

        Return only the name that is similar to the one that is written, if there is one.
        """
        names = _allowed_names(self._type, self.document, path)
        if similar := similar_name(written, names):
            return f"; did you mean {similar}?"
        return f"; expected one of {', '.join(names)}" if names else ""


def _original_path(path: FieldPath, removed: Collection[FieldPath]) -> FieldPath:
    """Return a path as it was before elements of lists were removed."""
    found: FieldPath = ()
    for step in path:
        if isinstance(step, int):
            for index in sorted(_removed_elements(found, removed)):
                step += index <= step
        found = (*found, step)
    return found


def _removed_elements(path: FieldPath, removed: Iterable[FieldPath]) -> Iterator[int]:
    for each in removed:
        match each[len(path) :]:
            case (int(index),) if each[: len(path)] == path:
                yield index


def _placeholder(holder: inspect.Type | None, name: str) -> object:
    """Return a value that a missing field may have, None if any may have errors of its own."""
    fields = holder.fields if isinstance(holder, inspect.StructType) else ()
    match next((each.type for each in fields if each.encode_name == name), None):
        case inspect.StructType(tag=None):
            return {}
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.StrType():
            return ""
    return None


def _with_field(value: Any, path: FieldPath, field: object) -> object:
    step, *rest = path
    inner = _with_field(value[step], tuple(rest), field) if rest else field
    if isinstance(value, Sequence) and isinstance(step, int):
        return [*value[:step], inner, *value[step + 1 :]]
    return {**value, step: inner}


def _without(value: Any, path: FieldPath) -> object:
    step, *rest = path
    if isinstance(value, Sequence) and isinstance(step, int):
        kept = [_without(value[step], tuple(rest))] if rest else []
        return [*value[:step], *kept, *value[step + 1 :]]
    others = {key: each for key, each in value.items() if key != step}
    return {**others, step: _without(value[step], tuple(rest))} if rest else others


def _allowed_names(kind: inspect.Type, value: Any, path: FieldPath) -> Sequence[str]:
    """Return the names allowed at a path: the fields of a struct, the values of an enumeration."""
    match _type_at(kind, value, path):
        case inspect.StructType(fields=fields):
            found = _value_at(value, path)
            return [each.encode_name for each in fields] if isinstance(found, Mapping) else ()
        case inspect.EnumType(cls=cls):
            return [str(each.value) for each in cls]
        case inspect.LiteralType(values=values):
            return [str(each) for each in values]
        case inspect.BoolType():
            return ("true", "false")
    return ()


def _type_at(kind: inspect.Type, value: Any, path: FieldPath) -> inspect.Type | None:
    """Return the type of a field, also of one that is missing in ``value``."""
    kind = _unwrapped_type(kind, value)
    if not path:
        return kind
    step, *rest = path
    match kind:
        case inspect.StructType(fields=fields):
            field = next((each for each in fields if each.encode_name == step), None)
            return None if field is None else _type_at(field.type, value.get(step), tuple(rest))
        case inspect.UnionType(types=types):  # an unknown tag
            structs = (each for each in types if isinstance(each, inspect.StructType))
            return inspect.LiteralType(tuple(str(each.tag) for each in structs))
        case inspect.VarTupleType(item_type=item):
            return _type_at(item, value[step], tuple(rest))
    return None


def _value_at(value: Any, path: FieldPath) -> Any:
    for step in path:
        value = value[step]
    return value


def _unwrapped_type(kind: inspect.Type, value: Any) -> inspect.Type:
    """Return a type without its bounds, and of a union the member that applies."""
    if isinstance(kind, inspect.Metadata):
        return _unwrapped_type(kind.type, value)
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    if len(members) > 1 and isinstance(value, Mapping):
        structs = (each for each in members if isinstance(each, inspect.StructType))
        tagged = [each for each in structs if value.get(each.tag_field) == each.tag]
        return tagged[0] if tagged else kind
    if isinstance(value, list):
        members = [each for each in members if isinstance(each, inspect.VarTupleType)]
    return members[0] if len(members) == 1 else kind
