"""Strict decoding of a configuration file, which reports all errors, not only the first.

YAML parsers take the last value of a duplicate key, so the other value would be ignored silently;
here duplicate keys are errors.

msgspec stops at the first error. So the invalid field is removed from the document, and decoding is
retried until no error is left. The remaining document is decoded as well, so that one error does
not hide another. A document without any known field has a single error: it is of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml
from msgspec import inspect

from extender.kube.decoders.yaml_loader import BoundedLoader
from policies.kubernetes.input_error import InputError, similar_name
from policies.kubernetes.integers import parse_integer

T = TypeVar("T")

_Path = tuple[str | int, ...]
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_UNKNOWN = re.compile(r"Object contains unknown field (.*)")
_MISSING = re.compile(r"Object missing required field (.*)")


_TEXT = "tag:yaml.org,2002:str"
_FLOAT = "tag:yaml.org,2002:float"


class ConfigError(InputError, ValueError):
    """A configuration, a policy or an option is invalid."""


class ConfigFileError(ValueError):
    """A file holds no document; the text has the reason, without the name of the file."""


class _DuplicateKeyFinder:
    """Finds the duplicate keys of a document; visits each node once, despite aliases."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def find(self, node: yaml.Node, path: _Path) -> Iterator[str]:
        """Yield one line for each duplicate key, with its path and line numbers."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from self._find_in_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                yield from self.find(each, (*path, index))

    def _find_in_mapping(self, node: yaml.MappingNode, path: _Path) -> Iterator[str]:
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "(a key that is no text)"
            inner, line = (*path, name), key.start_mark.line + 1
            if name in lines:
                both = f"written in lines {lines[name]} and {line}"
                yield f"{_format_path(inner)}: {both}; expected it once"
            lines.setdefault(name, line)
            yield from self.find(value, inner)


def read_document(path: Path, text_fields: Collection[str] = ()) -> tuple[object, tuple[str, ...]]:
    """Return the only document of a file (None if empty), and one line for each duplicate key.

    The values of ``text_fields`` are text as it is written, although YAML takes 1.30 as a number.
    Raise ConfigFileError.
    """
    try:
        loader = BoundedLoader(path.read_bytes().decode("utf-8-sig"))
        node = loader.get_single_node()
        if node is None:
            return None, ()
        duplicates = tuple(_DuplicateKeyFinder().find(node, ()))
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.value in text_fields and value.tag == _FLOAT:
                value.tag = _TEXT
        return loader.construct_document(node), duplicates
    except OSError as error:
        raise ConfigFileError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigFileError(f"not UTF-8: byte {error.start}: {error.reason}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigFileError("nested too deeply") from None


class StrictResult(msgspec.Struct, Generic[T], frozen=True):
    """The decoded value (None if nothing is valid), and one line for each error, with its path.

    ``invalid_fields`` are the top-level fields of the document that have errors.
    """

    value: T | None
    errors: tuple[str, ...]
    invalid_fields: frozenset[str] = frozenset()


def decode_strictly(document: object, kind: type[T]) -> StrictResult[T]:
    """Convert a document to a struct, and collect all errors in the order they are found."""
    decoder = _StrictDecoder(document, kind)
    while True:
        try:
            value = msgspec.convert(decoder.document, kind)
            return StrictResult(value, tuple(decoder.errors), decoder.invalid_fields)
        except msgspec.ValidationError as error:
            if not decoder.remove_invalid(str(error).replace("`", "")):
                return StrictResult(None, tuple(decoder.errors))


class _StrictDecoder:
    """A document, and the fields removed from it; paths are those of the original."""

    def __init__(self, document: object, kind: type) -> None:
        self.document: Any = document
        self.errors: list[str] = []
        self._type = inspect.type_info(kind)
        self._removed: set[_Path] = set()

    @property
    def invalid_fields(self) -> frozenset[str]:
        """The top-level fields of the document that have errors."""
        return frozenset(str(path[0]) for path in self._removed)

    def remove_invalid(self, error: str) -> bool:
        """Record an error, and remove the invalid field; False if that is the whole document."""
        problem, _, place = error.partition(" - at ")
        place = place.removeprefix("key in ")
        path = _parse_path(place)
        unknown, missing = _UNKNOWN.fullmatch(problem), _MISSING.fullmatch(problem)
        is_other_kind = unknown is not None and not path and self._is_other_kind()
        if is_other_kind:
            problem = f"Object contains unknown field {', '.join(map(str, self.document))}"
        if missing is None or (*self._original_path(path), missing[1]) not in self._removed:
            shown = _format_path(self._original_path(path)) + (
                "[...]" if place.endswith("[...]") else ""
            )
            allowed = "" if missing else self._allowed_text(path, unknown[1] if unknown else "")
            self.errors.append(f"{shown or '(the document)'}: {problem}{allowed}")
        if is_other_kind:
            return False
        if unknown is not None:
            path = (*path, self._written_name(path, unknown[1]))
        if not path:
            return False
        self._removed.add(self._original_path(path))
        self.document = _without(self.document, path)
        return True

    def _written_name(self, path: _Path, name: str) -> str:
        """Return the name of a field as it is written: messages have no backticks."""
        holder = self.document
        for step in path:
            holder = holder[step]
        return next((str(key) for key in holder if str(key).replace("`", "") == name), name)

    def _is_other_kind(self) -> bool:
        """Return whether no field of the document is known, so that it is of another kind."""
        known = frozenset(_allowed_names(self._type, self.document, ()))
        return not self._removed and known.isdisjoint(self.document)

    def _original_path(self, path: _Path) -> _Path:
        """Return a path as it was before elements of lists were removed."""
        found: _Path = ()
        for step in path:
            if isinstance(step, int):
                for removed in sorted(self._removed_from(found)):
                    step += removed <= step
            found = (*found, step)
        return found

    def _removed_from(self, path: _Path) -> list[int]:
        here = len(path)
        steps = (
            each[here] for each in self._removed if len(each) == here + 1 and each[:here] == path
        )
        return [step for step in steps if isinstance(step, int)]

    def _allowed_text(self, path: _Path, written: str) -> str:
        """Return the allowed names at a path for an error message, "" if there are none.

        Return only the name that is similar to the one that is written, if there is one.
        """
        names = _allowed_names(self._type, self.document, path)
        if similar := similar_name(written, names):
            return f"; did you mean {similar}?"
        return f"; expected one of {', '.join(names)}" if names else ""


def _parse_path(text: str) -> _Path:
    found: list[str | int] = []
    for step in _STEP.finditer(text):
        if step[0] == "[...]":  # msgspec does not name the key of a mapping
            break
        index = parse_integer(step[2] or "")
        found.append(step[1] if index is None else index)
    return tuple(found)


def _format_path(path: _Path) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def _without(value: Any, path: _Path) -> object:
    step, *rest = path
    if isinstance(value, Sequence) and isinstance(step, int):
        kept = [_without(value[step], tuple(rest))] if rest else []
        return [*value[:step], *kept, *value[step + 1 :]]
    others = {key: each for key, each in value.items() if key != step}
    return {**others, step: _without(value[step], tuple(rest))} if rest else others


def _allowed_names(kind: inspect.Type, value: Any, path: _Path) -> Sequence[str]:
    """Return the names allowed at a path: the fields of a struct, the values of an enumeration."""
    kind = _unwrapped_type(kind, value, path)
    if path:
        return _allowed_names_inside(kind, value, path[0], path[1:])
    match kind:
        case inspect.StructType(fields=fields):
            return [each.encode_name for each in fields] if isinstance(value, Mapping) else ()
        case inspect.EnumType(cls=cls):
            return [str(each.value) for each in cls]
        case inspect.LiteralType(values=values):
            return [str(each) for each in values]
        case inspect.BoolType():
            return ("true", "false")
    return ()


def _allowed_names_inside(
    kind: inspect.Type, value: Any, step: str | int, rest: _Path
) -> Sequence[str]:
    match kind:
        case inspect.StructType(fields=fields):
            field = next((each for each in fields if each.encode_name == step), None)
            return () if field is None else _allowed_names(field.type, value[step], rest)
        case inspect.UnionType(types=types):  # an unknown tag
            return [str(each.tag) for each in types if isinstance(each, inspect.StructType)]
        case inspect.VarTupleType(item_type=item):
            return _allowed_names(item, value[step], rest)
    return ()


def _unwrapped_type(kind: inspect.Type, value: Any, path: _Path) -> inspect.Type:
    """Return a type without its bounds, and of a union the member that applies."""
    if isinstance(kind, inspect.Metadata):
        return _unwrapped_type(kind.type, value, path)
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    if len(members) > 1 and isinstance(value, Mapping):
        structs = (each for each in members if isinstance(each, inspect.StructType))
        tagged = [each for each in structs if value.get(each.tag_field) == each.tag]
        return tagged[0] if tagged else kind
    return members[0] if len(members) == 1 else kind
