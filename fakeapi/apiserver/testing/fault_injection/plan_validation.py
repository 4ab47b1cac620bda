"""Validation of plans field by field, so that every error names the path of its field.

    faults[2].probability: expected a number from 0 to 1, got 1.5

A rule that can match no request is an error. Only resources that are served when the plan is parsed
are valid: a rule for custom resources must be made after their definition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.resource_info import VERBS
from fakeapi.apiserver.testing.fault_injection.effects import (
    CONFLICT_VERBS,
    WATCHING,
    Conflict,
    Effect,
    Staleness,
)
from fakeapi.apiserver.testing.fault_injection.plan import ResourceName, Scope

_EXCERPT_CHARS = 80


class PlanError(ValueError):
    """A plan is invalid or can match nothing; the message has the path and the expected value."""


class PlanReader:
    """Reads the fields of an object at the path ``place``; a field that is not read is an error."""

    def __init__(self, document: Any, place: str) -> None:
        if not isinstance(document, dict):
            raise PlanError(f"{place or 'plan'}: expected an object, got {_json_excerpt(document)}")
        self.document: dict[str, Any] = document
        self._place = place
        self._names: list[str] = []

    def field_path(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self._place}.{name}" if self._place else name

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        self._names.append(name)
        return self.document.get(name) is not None

    def error(self, name: str, expected: str) -> PlanError:
        """Return the error of a field's value."""
        found = _json_excerpt(self.document.get(name))
        return PlanError(f"{self.field_path(name)}: expected {expected}, got {found}")

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """Return a number of at least ``least``. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise self.error(name, f"a number of at least {least:g}")
        return float(value)

    def count(self, name: str, default: int, least: int = 0) -> int:
        """Return an integer of at least ``least``. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(name, f"a whole number of at least {least}")
        return value

    def choice(self, name: str, choices: Collection[str], default: str | None = None) -> str:
        """Return one of ``choices`` (a number counts as its text). Raise PlanError."""
        if not self.has(name) and default is not None:
            return default
        value = self.document.get(name)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or text not in choices:
            raise self.error(name, f"one of {', '.join(choices)}")
        return text

    def text(self, name: str, default: str) -> str:
        """Return a string. Raise PlanError."""
        if not self.has(name):
            return default
        value = self.document[name]
        if not isinstance(value, str):
            raise self.error(name, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a string or a list of strings, none of them empty. Raise PlanError."""
        if not self.has(name):
            return ()
        value = self.document[name]
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise self.error(name, "a text or a list of texts that are not empty")
        return tuple(texts)

    def objects(self, name: str) -> Sequence[PlanReader]:
        """Return a reader for each object of a list. Raise PlanError."""
        if not self.has(name) or not isinstance(self.document[name], list):
            raise self.error(name, "a list of objects")
        listed = enumerate(self.document[name])
        return [PlanReader(each, f"{self.field_path(name)}[{index}]") for index, each in listed]

    def finish(self) -> None:
        """Raise PlanError if the object has a field that was not read."""
        for name in self.document:
            if name not in self._names:
                names = ", ".join(dict.fromkeys(self._names))
                unknown = " ".join(self.field_path(str(name)).split())  # an error is one line
                raise PlanError(f"{unknown}: no such field here; there are: {names}")


def _json_excerpt(value: Any) -> str:
    if value is None:
        return "nothing"
    text = orjson.dumps(value, default=repr).decode()
    return text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}…"


_METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options")
_OTHER_PATHS: Final = ("/openapi/", "/version", "/healthz", "/livez", "/readyz")
_IN_NAMES: Final = re.compile(r"[^\s/]+")
_WILD: Final = re.compile(r"[*?\[]")


def validate_rule(effect: Effect, scope: Scope, kinds: ResourceRegistry, place: str) -> None:
    """Raise PlanError if the effect can never apply to a request in scope."""
    _check_verbs(effect, scope, place)
    if scope.paths:
        _check_paths(scope, kinds, place)
        return
    for field in ("namespaces", "names"):
        for pattern in getattr(scope, field):
            if not _IN_NAMES.fullmatch(pattern):
                raise PlanError(f"{place}.{field}: no name can be like {pattern!r}")
    for resource in scope.resources:
        _check_resource(resource, effect, scope, kinds, place)
    _check_subresources(scope, _kinds_in(scope, kinds), place)


def _check_verbs(effect: Effect, scope: Scope, place: str) -> None:
    verbs = (*VERBS, *_METHODS) if scope.paths else VERBS
    for verb in scope.verbs:
        if verb not in verbs:
            raise PlanError(f"{place}.verbs: no verb {verb!r}; there are: {', '.join(verbs)}")
        if verb not in _verbs_of(effect, verbs):
            able = " and ".join(_verbs_of(effect, verbs))
            raise PlanError(f"{place}.verbs: this fault does not apply to {verb!r}, only to {able}")
    if scope.subresources and isinstance(effect, (*WATCHING, Staleness)):
        able = " and ".join(_verbs_of(effect, verbs))
        raise PlanError(
            f"{place}.subresources: this fault applies to {able} only, without subresources"
        )


def _verbs_of(effect: Effect, verbs: Sequence[str]) -> Sequence[str]:
    """Return the verbs to which an effect can apply."""
    if isinstance(effect, WATCHING):
        return ("watch",)
    if isinstance(effect, Conflict):
        return CONFLICT_VERBS
    return ("list", "watch") if isinstance(effect, Staleness) else verbs


def _check_resource(
    resource: ResourceName, effect: Effect, scope: Scope, kinds: ResourceRegistry, place: str
) -> None:
    place_and_name = f"{place}.resources: {_resource_text(resource)!r}"
    found = _named(resource, kinds)
    if not found:
        raise PlanError(
            f"{place_and_name} is not served here; "
            "expected a plural such as pods, or with its group, apps/deployments"
        )
    if scope.namespaces and not any(kind.namespaced for kind in found):
        raise PlanError(f"{place}.namespaces: {_resource_text(resource)!r} is in no namespace")
    if scope.subresources and not any(_own_subresources(kind, scope) for kind in found):
        subresources = sorted({name for kind in found for name in kind.subresources})
        raise PlanError(
            f"{place}.subresources: {_resource_text(resource)!r} has none of "
            f"{', '.join(scope.subresources)}; it has: {', '.join(subresources) or 'none'}"
        )
    verbs = [verb for verb in scope.verbs or VERBS if verb in _verbs_of(effect, VERBS)]
    able = {verb for kind in found for verb in _verbs_at(kind, scope)}
    for verb in verbs if scope.verbs else ():
        if verb not in able:
            raise PlanError(
                f"{place}.verbs: {_resource_text(resource)!r} cannot {verb!r}; "
                f"it can: {', '.join(sorted(able))}"
            )
    if not able.intersection(verbs):
        needed = " or ".join(_verbs_of(effect, VERBS))
        raise PlanError(f"{place_and_name} cannot {needed}, so this fault never applies")


def _check_subresources(scope: Scope, concerned: Sequence[ResourceInfo], place: str) -> None:
    for name in scope.subresources:
        if name == "*":
            continue
        able = [kind for kind in concerned if name in kind.subresources]
        if not able:
            raise PlanError(f"{place}.subresources: no resource here has {name!r}")
        verbs = {verb for kind in able for verb in kind.subresources[name].verbs}
        if scope.verbs and not verbs.intersection(scope.verbs):
            raise PlanError(
                f"{place}.verbs: {name!r} can only {', '.join(sorted(verbs))}, not "
                f"{', '.join(scope.verbs)}"
            )


def _check_paths(scope: Scope, kinds: ResourceRegistry, place: str) -> None:
    for field in ("resources", "subresources", "namespaces", "names"):
        if getattr(scope, field):
            raise PlanError(f"{place}.{field}: excludes paths; expected one of the two")
    for pattern in scope.paths:
        wild = _WILD.search(pattern)
        literal = pattern[: wild.start()] if wild else pattern
        if not any(_may_begin(literal, start) for start in _path_starts(kinds)):
            raise PlanError(f"{place}.paths: no path here is like {pattern!r}")


def _may_begin(literal: str, start: str) -> bool:
    return literal.startswith(start) or start.startswith(literal)


def _path_starts(kinds: ResourceRegistry) -> Iterable[str]:
    yield from _OTHER_PATHS
    for kind in kinds.all:
        yield f"{kind.root}/{kind.plural}"
        if kind.namespaced:
            yield f"{kind.root}/namespaces/"


def _named(resource: ResourceName, kinds: ResourceRegistry) -> Sequence[ResourceInfo]:
    return [kind for kind in kinds.all if resource.matches(kind.group, kind.plural)]


def _kinds_in(scope: Scope, kinds: ResourceRegistry) -> Sequence[ResourceInfo]:
    if not scope.resources:
        return kinds.all
    return [kind for resource in scope.resources for kind in _named(resource, kinds)]


def _own_subresources(kind: ResourceInfo, scope: Scope) -> Sequence[str]:
    return [name for name in kind.subresources if name in scope.subresources or _all_of(scope)]


def _verbs_at(kind: ResourceInfo, scope: Scope) -> Iterable[str]:
    if not scope.subresources:
        return kind.verbs
    names = _own_subresources(kind, scope)
    return [verb for name in names for verb in kind.subresources[name].verbs]


def _all_of(scope: Scope) -> bool:
    return "*" in scope.subresources


def _resource_text(resource: ResourceName) -> str:
    return resource.plural if resource.group is None else f"{resource.group}/{resource.plural}"
