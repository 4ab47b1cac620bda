"""Validation of plans: a rule that can match no request is an error when the plan is parsed.

Only resources that are served at that time are valid: a rule for custom resources must be made
after their definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fakeapi.api.faulting.effects import WATCHING, Effect, Staleness
from fakeapi.api.faulting.fields import PlanError
from fakeapi.api.faulting.plans import ResourceName, Scope
from fakeapi.kinds import ResourceInfo, ResourceRegistry
from fakeapi.kinds.kind import VERBS

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
    known = (*VERBS, *_METHODS) if scope.paths else VERBS
    for verb in scope.verbs:
        if verb not in known:
            raise PlanError(f"{place}.verbs: no verb {verb!r}; there are: {', '.join(known)}")
        if verb not in _verbs_of(effect, known):
            able = " and ".join(_verbs_of(effect, known))
            raise PlanError(f"{place}.verbs: {verb!r} cannot meet this fault, only {able} can")
    if scope.subresources and isinstance(effect, (*WATCHING, Staleness)):
        able = " and ".join(_verbs_of(effect, known))
        raise PlanError(f"{place}.subresources: only {able} can meet this fault, without any")


def _verbs_of(effect: Effect, known: Sequence[str]) -> Sequence[str]:
    """Return the verbs to which an effect can apply."""
    if isinstance(effect, WATCHING):
        return ("watch",)
    return ("list", "watch") if isinstance(effect, Staleness) else known


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
        there = sorted({name for kind in found for name in kind.subresources})
        raise PlanError(
            f"{place}.subresources: {_resource_text(resource)!r} has none of "
            f"{', '.join(scope.subresources)}; it has: {', '.join(there) or 'none'}"
        )
    wanted = [verb for verb in scope.verbs or VERBS if verb in _verbs_of(effect, VERBS)]
    able = {verb for kind in found for verb in _verbs_at(kind, scope)}
    for verb in wanted if scope.verbs else ():
        if verb not in able:
            raise PlanError(
                f"{place}.verbs: {_resource_text(resource)!r} cannot {verb!r}; "
                f"it can: {', '.join(sorted(able))}"
            )
    if not able.intersection(wanted):
        raise PlanError(f"{place_and_name} cannot be listed or watched, so it never meets this")


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
            raise PlanError(f"{place}.{field}: paths say it already; expected one of the two")
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
