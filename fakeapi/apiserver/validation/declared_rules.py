"""Rules that upstream declares as markers on the fields of a type.

    +k8s:required, +k8s:format=k8s-short-name    required_name("name", invalid_dns_label)
    +k8s:unionMember on two fields               one_of("basic", "gang")
    +k8s:maxItems=8                              max_items("podGroupTemplates", 8)
    +k8s:listType=map, +k8s:listMapKey=name      unique_items("podGroupTemplates", "name")
    +k8s:required, +k8s:minimum=1                at_least_one("minCount")
    +k8s:maximum=1000000000                      at_most("priority", 1_000_000_000)
    +k8s:immutable                               immutable_errors("spec.priority", new, old)

Source: k8s.io/apimachinery/pkg/api/validate (union.go, limits.go, immutable.go), v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    go_formatted,
    invalid_value,
    required,
    too_many,
)
from fakeapi.apiserver.wire.raw_json import json_equal

Object = Mapping[str, Any]
Rule = Callable[[Object, str], Iterator[Cause]]

_IMMUTABLE: Final = "field is immutable"


def required_name(name: str, invalid: Callable[[str], str]) -> Rule:
    """Return the rule of a field that must have a name; ``invalid`` returns an error or ""."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        if not target.get(name):
            yield required(f"{path}.{name}")
        else:
            yield from optional_name(name, invalid)(target, path)

    return rule


def optional_name(name: str, invalid: Callable[[str], str]) -> Rule:
    """Return the rule of a field that may have a name."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        value = target.get(name)
        if value and (wrong := invalid(value)):
            yield invalid_value(f"{path}.{name}", value, wrong)

    return rule


def one_of(*members: str) -> Rule:
    """Return the rule of a union: exactly one of the members is set."""
    listed = ", ".join(f"`{member}`" for member in members)

    def rule(target: Object, path: str) -> Iterator[Cause]:
        present = [member for member in members if target.get(member) not in (None, [])]
        if not present:
            yield invalid_value(path, "", f"must specify one of: {listed}")
        elif len(present) > 1:
            detail = f"must specify exactly one of: {listed}"
            yield invalid_value(path, f"{{{', '.join(present)}}}", detail)

    return rule


def max_items(name: str, most: int) -> Rule:
    """Return the rule of a list with at most ``most`` elements."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        count = len(target.get(name) or ())
        if count > most:
            yield too_many(f"{path}.{name}", count, most)

    return rule


def unique_items(name: str, key: str) -> Rule:
    """Return the rule of a list whose elements differ in one key."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        seen: set[Any] = set()
        for index, element in enumerate(target.get(name) or ()):
            value = element.get(key)
            if value in seen:
                yield duplicate(f"{path}.{name}[{index}]", go_formatted(element))
            seen.add(value)

    return rule


def at_least_one(name: str) -> Rule:
    """Return the rule of a required integer of at least 1; 0 counts as absent."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        value = target.get(name) or 0
        if not value:
            yield required(f"{path}.{name}")
        elif value < 1:
            yield invalid_value(f"{path}.{name}", value, "must be greater than or equal to 1")

    return rule


def at_most(name: str, most: int) -> Rule:
    """Return the rule of an integer with a maximum."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        value = target.get(name) or 0
        if value > most:
            yield invalid_value(f"{path}.{name}", value, f"must be less than or equal to {most}")

    return rule


def immutable_errors(path: str, new: Object, old: Object, *names: str) -> Iterator[Cause]:
    """Yield an error for each of the fields ``names`` of ``path`` that has changed."""
    for name in names:
        if not json_equal(_value(new, name), _value(old, name)):
            yield invalid_value(f"{path}.{name}", None, _IMMUTABLE)


def _value(target: Object, name: str) -> Any:
    value = target.get(name)
    return None if value in ("", []) else value
