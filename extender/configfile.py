"""Strict decoding of a configuration file: one YAML document without duplicate keys.

YAML parsers take the last value of a duplicate key, so the other value would be ignored silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

_YamlPath = tuple[str, ...]


class ConfigFileError(ValueError):
    """A file holds no document; the text has the reason, without the name of the file."""


class _DuplicateKeyFinder:
    """Finds the duplicate keys of a document; visits each node once, despite aliases."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def find(self, node: yaml.Node, path: _YamlPath) -> Iterator[str]:
        """Yield one line for each duplicate key, with its path and line numbers."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from self._find_in_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                yield from self.find(each, (*path, f"[{index}]"))

    def _find_in_mapping(self, node: yaml.MappingNode, path: _YamlPath) -> Iterator[str]:
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "(a key that is no text)"
            here, line = (*path, f".{name}"), key.start_mark.line + 1
            if name in lines:
                first = lines[name]
                yield f"{_format_yaml_path(here)}: written in lines {first} and {line}; expected it once"
            lines.setdefault(name, line)
            yield from self.find(value, here)


def read_document(path: Path) -> tuple[object, tuple[str, ...]]:
    """Return the only document of a file (None if empty), and one line for each duplicate key.

    Raise ConfigFileError.
    """
    try:
        loader = yaml.CSafeLoader(path.read_bytes().decode("utf-8-sig"))
        node = loader.get_single_node()
        faults = () if node is None else tuple(_DuplicateKeyFinder().find(node, ()))
        return (None if node is None else loader.construct_document(node)), faults
    except OSError as error:
        raise ConfigFileError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigFileError(f"not UTF-8: byte {error.start}: {error.reason}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigFileError("nested too deeply") from None


def _format_yaml_path(path: _YamlPath) -> str:
    return "".join(path).removeprefix(".")
