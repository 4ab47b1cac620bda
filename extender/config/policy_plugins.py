"""The plugins of policies that installed packages have: found by name, loaded and checked.

Packages are searched only if a policy names a plugin, since that takes milliseconds. The name of a
plugin has no spaces and every criterion of Reprieve has some, so that no plugin replaces one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from extender.config.policy_file import ALL_CANDIDATE_CRITERIA
from policies.kubernetes.name_validation import invalid_dns_label
from policies.plugins import (
    SAMPLE_POD,
    CostPlugin,
    EvaluationError,
    GuardPlugin,
    PluginCallError,
    call_plugin,
)
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.guards.victim_guard import VictimGuard

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "reprieve.policies"
_DECLARED: Final[Mapping[type, str]] = {
    CostPlugin: "a cost, which @victim_cost declares",
    GuardPlugin: "a guard, which @victim_guard declares",
}

Plugin = TypeVar("Plugin", bound=CostPlugin | GuardPlugin)


class InvalidPluginError(ValueError):
    """A plugin cannot be used; the message is one line, with its name and its package."""


def plugin_names() -> Sequence[str]:
    """Return the names of the installed plugins."""
    return sorted({each.name for each in _entry_points()})


def plugin_criteria(names: Iterable[str]) -> Mapping[str, CostCriterion]:
    """Return the criteria of those names that are no criteria of Reprieve.

    Raise InvalidPluginError.
    """
    return {
        name: CostCriterion(name, load_plugin(name, CostPlugin).cost(name))
        for name in names
        if name not in ALL_CANDIDATE_CRITERIA
    }


def plugin_guards(names: Iterable[str]) -> Iterator[VictimGuard]:
    """Yield the guards of these names. Raise InvalidPluginError."""
    return (load_plugin(name, GuardPlugin).guard(name) for name in names)


def load_plugin(name: str, kind: type[Plugin]) -> Plugin:
    """Return a plugin, which does not fail for the sample pod. Raise InvalidPluginError."""
    found = [each for each in _entry_points() if each.name == name]
    text = f"plugin {name!r} of {' and of '.join(map(_source, found)) or 'no package'}"
    if len(found) != 1:
        raise InvalidPluginError(f"{text}; expected one package")
    if reason := invalid_dns_label(name):
        raise InvalidPluginError(f"{text}: its name: {reason}")
    try:
        plugin = _declared(call_plugin(found[0].load), kind)
        _evaluate_sample(plugin)
    except EvaluationError as error:
        raise InvalidPluginError(f"{text}: {error}") from error
    return plugin


def _declared(found: object, kind: type[Plugin]) -> Plugin:
    if isinstance(found, kind):
        return found
    text = _DECLARED.get(type(found), f"an object of type {type(found).__name__}")
    raise PluginCallError(f"expected {_DECLARED[kind]}, found {text}")


def _evaluate_sample(plugin: CostPlugin | GuardPlugin) -> None:
    try:
        plugin.evaluate(SAMPLE_POD)
    except PluginCallError as error:
        raise PluginCallError(f"for a pod without labels and annotations: {error}") from error
    except EvaluationError:
        return  # it reports on purpose that such a pod has no value


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # imported on use: start-up time

    return entry_points(group=GROUP)


def _source(found: EntryPoint) -> str:
    """Return the package of an entry point, and the object that it refers to."""
    package = found.dist
    name = "a package" if package is None else f"{package.name} {package.version}"
    return f"{name} ({found.value})"
