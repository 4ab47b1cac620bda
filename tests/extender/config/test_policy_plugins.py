"""Plugins of installed packages in policies: found, checked, and named in errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from extender.config.policy_file import ALL_CANDIDATE_CRITERIA
from extender.config.preemption_policy import InvalidPolicyError, find_policy
from policies.kubernetes.name_validation import invalid_dns_label
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.pod_cost import Cost
from tests.builders import pod
from tests.extender.config.plugin_packages import write_package

Install = Callable[..., str]
HEAD: Final = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: own}\n"
MODULE: Final = """
from policies.plugins import EvaluationError, victim_cost, victim_guard

@victim_cost(unit="restarts", annotations=("example.com/key",))
def restarted(pod):
    return pod.restarts

@victim_guard()
def ready(pod):
    return pod.ready

@victim_cost(unit="any")
def unknown(pod):
    raise EvaluationError("it has no key")

@victim_cost(unit="any")
def failing(pod):
    return pod.labels["key"]

@victim_cost(unit="any")
def fraction(pod):
    return 0.5

@victim_guard()
def number(pod):
    return 1

def plain(pod):
    return 0
"""
NAMES: Final = ("restarted", "ready", "unknown", "failing", "fraction", "number", "plain", "absent")
_modules: Final = count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return the function that installs a package, with entry points to objects of its module."""

    def installed(package: str, source: str = MODULE, **names: str) -> str:
        module = f"plugins_{next(_modules)}"
        points = {name: f"{module}:{value}" for name, value in names.items()}
        write_package(tmp_path / package, package, module, source, points)
        monkeypatch.syspath_prepend(tmp_path / package)
        return module

    return installed


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], str]:
    """Return the function that writes a policy with one rule, from the fields of the rule."""

    def written(fields: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(f"{HEAD}rules:\n- name: all\n  {fields}\n")
        return str(path)

    return written


def errors_of(path: str) -> list[str]:
    with pytest.raises(InvalidPolicyError) as caught:
        find_policy(path)
    return [line.removeprefix(path) for line in caught.value.errors]


def test_a_cost_is_a_criterion_and_a_guard_protects(
    install: Install, policy: Callable[[str], str]
) -> None:
    install("own", restarted="restarted", ready="ready")
    fields = "candidates: [restarted, fewest victims]\n  guards: {plugins: [ready]}"
    found = find_policy(policy(fields)).default
    criterion, _ = found.candidates
    assert isinstance(criterion, CostCriterion)
    assert (criterion.name, criterion.cost.unit) == ("restarted", "restarts")
    assert criterion.cost.of(pod(restarts=3)) == Cost(3)
    assert [guard.name for guard in found.victim_guards] == ["ready", "restarted"]
    assert [found.may_evict(pod(ready=ready), 0) for ready in (True, False)] == [False, True]
    assert found.annotations == {"example.com/key"}


def test_a_pod_without_a_value_is_protected(install: Install, policy: Callable[[str], str]) -> None:
    install("own", unknown="unknown")
    found = find_policy(policy("candidates: [unknown]")).default
    guard = found.protection_of(pod(), now_ns=0)
    assert guard is not None
    assert guard.explain(pod(), 0) == "protected by unknown: it has no key"


NAMED_BY: Final = {
    "candidates": ("candidates: [{}]", "candidates[0]"),
    "guards": ("guards: {{plugins: [{}]}}", "guards.plugins[0]"),
}
A_COST: Final = "a cost, which @victim_cost declares"
A_GUARD: Final = "a guard, which @victim_guard declares"
COST: Final = ":6: rules[0].candidates[0]: plugin 'cost' of"
SAMPLE: Final = "for a pod without labels and annotations"


@pytest.mark.parametrize(
    ("field", "name", "reason"),
    [
        ("candidates", "failing", f"{SAMPLE}: KeyError: 'key'"),
        ("candidates", "fraction", f"{SAMPLE}: expected a result of type int, found float"),
        ("guards", "number", f"{SAMPLE}: expected a result of type bool, found int"),
        ("candidates", "ready", f"expected {A_COST}, found {A_GUARD}"),
        ("guards", "restarted", f"expected {A_GUARD}, found {A_COST}"),
        ("guards", "plain", f"expected {A_GUARD}, found an object of type function"),
        ("candidates", "absent", "AttributeError: module 'MODULE' has no attribute 'absent'"),
    ],
)
def test_an_unusable_plugin_is_one_line_with_the_package_and_the_entry_point(
    field: str, name: str, reason: str, install: Install, policy: Callable[[str], str]
) -> None:
    module = install("own", **{name: name for name in NAMES})
    fields, place = NAMED_BY[field]
    [error] = errors_of(policy(fields.format(name)))
    assert error.replace(module, "MODULE") == (
        f":6: rules[0].{place}: plugin {name!r} of own 1.0 (MODULE:{name}): {reason}"
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ("candidates: [fail]", "candidates[0]: unknown criterion 'fail'; did you mean 'failing'?"),
        ("guards: {plugins: [zz]}", "guards.plugins[0]: unknown plugin 'zz'; expected one of abs"),
        ("guards: {plugins: [ready, ready]}", "guards.plugins[1]: repeats 'ready'; expected each"),
    ],
)
def test_the_names_of_plugins_are_expected_like_those_of_criteria(
    fields: str, error: str, install: Install, policy: Callable[[str], str]
) -> None:
    install("own", **{name: name for name in NAMES})
    [found] = errors_of(policy(fields))
    assert found.startswith(f":6: rules[0].{error}")


def test_a_module_that_cannot_be_imported_is_an_error(
    install: Install, policy: Callable[[str], str]
) -> None:
    module = install("own", "import no_such_module", cost="cost")
    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    [error] = errors_of(policy("candidates: [cost]"))
    assert error == f"{COST} own 1.0 ({module}:cost): {reason}"


def test_two_packages_with_one_name_are_an_error(
    install: Install, policy: Callable[[str], str]
) -> None:
    own, other = (install(package, cost="restarted") for package in ("own", "other"))
    both = f"other 1.0 ({other}:restarted) and of own 1.0 ({own}:restarted)"
    assert errors_of(policy("candidates: [cost]")) == [f"{COST} {both}; expected one package"]


def test_a_name_that_is_no_dns_label_is_an_error(
    install: Install, policy: Callable[[str], str]
) -> None:
    install("own", Least_Work="restarted")
    [error] = errors_of(policy("candidates: [Least_Work]"))
    assert "own 1.0" in error
    assert "its name: " in error


def test_no_plugin_can_have_the_name_of_a_criterion() -> None:
    assert all(map(invalid_dns_label, ALL_CANDIDATE_CRITERIA))


def test_without_plugins_the_error_says_that_there_is_none(policy: Callable[[str], str]) -> None:
    [error] = errors_of(policy("guards: {plugins: [own]}"))
    assert error.endswith("unknown plugin 'own'; expected an installed one; there is none")


def test_packages_are_searched_only_for_a_policy_that_names_a_plugin(
    policy: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = policy("candidates: [fewest victims]")
    monkeypatch.delitem(sys.modules, "importlib.metadata", raising=False)
    find_policy(path)
    assert "importlib.metadata" not in sys.modules
