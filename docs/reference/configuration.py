"""The page about the configuration file: every key with its type, default and meaning.

Types and defaults are those of :class:`extender.config.component_config.Config`. Meanings are the
comments in the docstring of its module, which is a configuration with all defaults. The policy file
is shown as the docstring of its module has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from textwrap import dedent
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from docs.reference.tables import code, table
from extender.config import component_config, policy_file
from extender.config.component_config import Config
from extender.config.plugin_args import PluginConfig
from extender.config.policy_file import ALL_CANDIDATE_CRITERIA, VICTIM_CRITERIA
from policies.preemption.policy import POLICIES

PAGE: Final = "reference/configuration.md"

_TEXT: Final = """# Configuration

`reprieve serve --config FILE` and `reprieve check-config FILE` read these keys from YAML or JSON.
Every key is optional, unless its default is "required": then its section needs it. A key that is
not in the table is an error. [Operations](../operations.md) explains how the keys work together.

{keys}
The entries of `pluginConfig` are those of a profile of KubeSchedulerConfiguration. These plugins
are known: {plugins}.

## Policy file

`policy` names a built-in policy ({policies}), or a file. `reprieve policy check FILE` validates it,
`reprieve policy show FILE` shows it with all defaults, and `reprieve policy schema` prints its JSON
Schema. These are all fields:

```yaml
{policy}```

Criteria of `victims`, the first of which decides which pods are reprieved first: {victims}.

Criteria of `candidates`, the first of which decides which node is selected: {candidates}.
"""

_LINE: Final = re.compile(
    r"^(?P<indent> *)(?:(?P<key>\w+):(?: [^#]*?)?)?(?: *# (?P<comment>.*))?$",
)
_STEP: Final = 2


class Key(NamedTuple):
    """A key of the file by its path, such as ``limits.connections``."""

    path: str
    type: str
    default: str


def page() -> str:
    """Return the page."""
    return _TEXT.format(
        keys=_rows(Config, meanings()),
        policy=dedent((policy_file.__doc__ or "").partition("::\n\n")[2]),
        policies=_listed(POLICIES),
        plugins=_listed(_plugins()),
        victims=_listed(VICTIM_CRITERIA),
        candidates=_listed(ALL_CANDIDATE_CRITERIA),
    )


def keys(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[Key]:
    """Yield the keys of a section, those of its sections included."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        path = f"{prefix}{field.encode_name}"
        section = _section(field.type)
        if section is None:
            yield Key(path, _type_name(field.type), _default(field))
        else:
            yield from keys(section, f"{path}.")


def meanings() -> dict[str, str]:
    """Return the meaning of each key and section by its path."""
    found: dict[str, list[str]] = {}
    path: list[str] = []
    for block in (component_config.__doc__ or "").split("::\n\n")[1:]:
        path.clear()
        for line in block.splitlines():
            read = _LINE.match(line)
            if read is None or not line.startswith("    "):
                continue
            if read["key"]:
                depth = len(read["indent"]) // _STEP - _STEP
                path[depth:] = [read["key"]]
                found.setdefault(".".join(path), [])
            if path and read["comment"]:
                found[".".join(path)].append(read["comment"])
    return {key: " ".join(lines) for key, lines in found.items() if lines}


def meaning(path: str, known: Mapping[str, str]) -> str:
    """Return the meaning of a key, or else that of the section that it is in."""
    while path not in known and "." in path:
        path = path.rpartition(".")[0]
    return known.get(path, "")


def _rows(kind: type[msgspec.Struct], known: Mapping[str, str]) -> str:
    rows = ((code(key.path), key.type, key.default, meaning(key.path, known)) for key in keys(kind))
    return table(("key", "type", "default", "meaning"), rows)


def _section(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """Return the class of a section, also of one that may be absent."""
    if isinstance(kind, inspect.StructType):
        return kind.cls
    if isinstance(kind, inspect.UnionType):
        sections = [each for each in kind.types if isinstance(each, inspect.StructType)]
        if len(sections) == 1 and len(kind.types) == len(("section", "null")):
            return sections[0].cls
    return None


def _type_name(kind: inspect.Type) -> str:
    match kind:
        case inspect.EnumType():
            return " or ".join(code(str(each.value)) for each in kind.cls)
        case inspect.IntType() | inspect.FloatType():
            name = "integer" if isinstance(kind, inspect.IntType) else "number"
            return " ".join((name, *_bounds(kind)))
        case inspect.DictType():
            return f"map of {_type_name(kind.key_type)} to {_type_name(kind.value_type)}"
        case inspect.VarTupleType():
            return f"list of {_type_name(kind.item_type)}"
        case inspect.StructType():
            return f"object ({_fields(kind)})"
        case inspect.UnionType():
            return "object"
        case _:
            return {"StrType": "string", "BoolType": "boolean"}[type(kind).__name__]


def _fields(kind: inspect.StructType) -> str:
    """Return the names of the fields of an object, and those of objects in them in brackets."""
    named = []
    for field in kind.fields:
        item = field.type
        section = _section(item.item_type if isinstance(item, inspect.VarTupleType) else item)
        inner = None if section is None else inspect.type_info(section)
        nested = f" ({_fields(inner)})" if isinstance(inner, inspect.StructType) else ""
        named.append(f"{code(field.encode_name)}{nested}")
    return ", ".join(named)


def _bounds(kind: inspect.IntType | inspect.FloatType) -> Iterator[str]:
    for words, bound in (("above", kind.gt), ("from", kind.ge), ("to", kind.le)):
        if bound is not None and bound != component_config.MAX_SECONDS:
            yield f"{words} {bound}"


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return code(f"{value:g}")
    return code(msgspec.json.encode(value).decode())


def _plugins() -> list[str]:
    info = inspect.type_info(PluginConfig)
    assert isinstance(info, inspect.UnionType)
    return sorted(str(each.tag) for each in info.types if isinstance(each, inspect.StructType))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))
