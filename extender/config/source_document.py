"""A file as a document, and the lines of its fields.

YAML parsers take the last value of a duplicate key, so the other value would be ignored silently;
here duplicate keys are errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from extender.kube.decoders.yaml_loader import BoundedLoader
from policies.kubernetes.integers import parse_integer

FieldPath = tuple[str | int, ...]

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_TEXT = "tag:yaml.org,2002:str"
_FLOAT = "tag:yaml.org,2002:float"


class ConfigFileError(ValueError):
    """A file holds no document; the text has the reason, without the name of the file."""


class FieldProblem(NamedTuple):
    """An error of a document: the field that it is about, and the text, which names the field."""

    path: FieldPath
    text: str


class SourceDocument(NamedTuple):
    """The only document of a file (None if empty), its duplicate keys, and the lines of fields."""

    content: object
    duplicates: tuple[FieldProblem, ...]
    lines: Mapping[FieldPath, int]

    def line_of(self, path: FieldPath) -> int:
        """Return the line of a field; of one that is not written, that of the field around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_text(path: Path) -> str:
    """Return the text of a file. Raise ConfigFileError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigFileError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigFileError(f"not UTF-8: byte {error.start}: {error.reason}") from None


def parse_document(text: str, text_fields: Collection[str] = ()) -> SourceDocument:
    """Return the document that the text of a file has.

    The values of ``text_fields`` are text as it is written, although YAML takes 1.30 as a number.
    Raise ConfigFileError.
    """
    try:
        loader = BoundedLoader(text)
        node = loader.get_single_node()
        if node is None:
            return SourceDocument(None, (), {})
        fields = _FieldLines()
        fields.visit(node, (), node.start_mark.line + 1)
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.value in text_fields and value.tag == _FLOAT:
                value.tag = _TEXT
        return SourceDocument(
            loader.construct_document(node), tuple(fields.duplicates), fields.lines
        )
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigFileError("nested too deeply") from None


class _FieldLines:
    """The line of each field and the duplicate keys; each node is visited once despite aliases."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {}
        self.duplicates: list[FieldProblem] = []
        self._seen: set[int] = set()

    def visit(self, node: yaml.Node, path: FieldPath, line: int) -> None:
        """Add the fields of a node; ``line`` is that of its key."""
        self.lines[path] = line
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                self.visit(each, (*path, index), each.start_mark.line + 1)

    def _visit_mapping(self, node: yaml.MappingNode, path: FieldPath) -> None:
        first: dict[str, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "(a key that is no text)"
            inner, line = (*path, name), key.start_mark.line + 1
            if name in first:
                both = f"written in lines {first[name]} and {line}"
                text = f"{format_path(inner)}: {both}; expected it once"
                self.duplicates.append(FieldProblem(inner, text))
            first.setdefault(name, line)
            self.visit(value, inner, line)


def parse_path(text: str) -> FieldPath:
    """Return the path of a field that is written as in ``limits.connections`` or ``rules[0]``."""
    steps = ((step[1], parse_integer(step[2] or "")) for step in _STEP.finditer(f".{text}"))
    return tuple(name if index is None else index for name, index in steps)


def format_path(path: FieldPath) -> str:
    """Format the path of a field; the document as a whole has none."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".") or "(the document)"
