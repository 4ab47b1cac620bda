"""A file that a person wrote: one YAML document, in which each key stands once.

Of a key that is written twice YAML readers take the last, so that half of what stands in the file
would be void without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

_Place = tuple[str, ...]


class ConfigFileError(ValueError):
    """A file holds no document; the text says why, without the file's name."""


class _Document:
    """The nodes of a document, each looked at once, however many aliases lead to it."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def faults(self, node: yaml.Node, place: _Place) -> Iterator[str]:
        """Say which keys are written twice, each with its place."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from self._of_mapping(node, place)
        elif isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                yield from self.faults(each, (*place, f"[{index}]"))

    def _of_mapping(self, node: yaml.MappingNode, place: _Place) -> Iterator[str]:
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "(a key that is no text)"
            here, line = (*place, f".{name}"), key.start_mark.line + 1
            if name in lines:
                first = lines[name]
                yield f"{_shown(here)}: written in lines {first} and {line}; expected it once"
            lines.setdefault(name, line)
            yield from self.faults(value, here)


def read_document(path: Path) -> tuple[object, tuple[str, ...]]:
    """Read a file's only document (None if it is empty), and a line for each key written twice.

    Raises ConfigFileError.
    """
    try:
        loader = yaml.CSafeLoader(path.read_bytes().decode("utf-8-sig"))
        node = loader.get_single_node()
        faults = () if node is None else tuple(_Document().faults(node, ()))
        return (None if node is None else loader.construct_document(node)), faults
    except OSError as error:
        raise ConfigFileError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigFileError(f"not UTF-8: byte {error.start}: {error.reason}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigFileError("nested too deeply") from None


def _shown(place: _Place) -> str:
    return "".join(place).removeprefix(".")
