"""Random values of a type, by its annotations: small, and of any text and integer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from inspect import Parameter, signature
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_PLAIN: Mapping[object, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["", "a", "node-1", 'ä"\\ud800']) | st.text(max_size=4),
    int: st.sampled_from([0, 1, 2**63, -(2**70)]) | st.integers(),
    bool: st.booleans(),
    type(None): st.none(),
}


@cache
def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of a type: a dataclass, a named tuple, or what these are made of."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Mapping:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    if origin is frozenset:
        return st.frozensets(values_of(args[0]), max_size=2)
    if origin is tuple and args[-1] is ...:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if isinstance(kind, UnionType):
        return st.one_of(*map(values_of, args))
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return st.deferred(lambda: _built(kind))


def _built(kind: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of a dataclass or a named tuple; any field with a default may have it."""
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    parameters = signature(kind).parameters
    for name, each in get_type_hints(kind).items():
        fields = required if parameters[name].default is Parameter.empty else optional
        fields[name] = values_of(each)
    drawn = st.fixed_dictionaries(required, optional=optional)
    return drawn.map(lambda values: kind(**values))
