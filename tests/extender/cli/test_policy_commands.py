"""``reprieve policy``: check, show and schema; a policy that is shown is the same policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.cli.policy_commands import print_policy_schema
from extender.config.policy_file import (
    ALL_CANDIDATE_CRITERIA,
    API_VERSION,
    KIND,
    VICTIM_CRITERIA,
    PolicyFile,
)
from extender.config.preemption_policy import load_policy_file
from policies.preemption.costs.catalog import CHEAPEST_CRITERIA
from tests.commands import ROOT

Run = Callable[..., int]
SCHEMA: Final = ROOT / "deploy/policies/preemption-policy.schema.json"
HEAD: Final = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: own}\n"
PLAIN: Final = f"{HEAD}rules: [{{name: all, guards: {{maxVictims: 5}}}}]\n"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(PLAIN)
    return path


def test_a_valid_file_is_one_line(
    policy: Path, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("policy", "check", str(policy)) == 0
    assert capsys.readouterr() == (f"{policy}: valid\n", "")


def test_each_error_of_an_invalid_file_is_a_line_that_begins_with_its_place(
    policy: Path, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    policy.write_text(f"{HEAD}rules:\n- name: all\n  victims: [oldest]\n  guards: {{pdb: no}}\n")
    assert command_line("policy", "check", str(policy)) == 1
    assert capsys.readouterr() == (
        (
            f"{policy}:6: rules[0].victims[0]: unknown criterion 'oldest'; expected one of highest "
            "priority, earliest start, highest cost, highest deletion cost, fewest restarts\n"
            f"{policy}:7: rules[0].guards.pdb: Expected str, got bool; expected one of prefer, "
            "strict\n"
        ),
        "",
    )


@pytest.mark.parametrize("command", ["check", "show"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "policy 'F': no such file or built-in policy (kube-scheduler)"),
        ("a: [", "F: not YAML: while parsing"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_usage(
    command: str,
    content: str | None,
    problem: str,
    policy: Path,
    command_line: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    policy.unlink()
    if content is not None:
        policy.write_text(content)
    assert command_line("policy", command, str(policy)) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.replace(str(policy), "F").startswith(f"reprieve: {problem}")


def test_a_table_has_a_row_for_each_field(
    policy: Path, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("policy", "show", str(policy)) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    shown = {name: " ".join(value.split()) for name, value in rows}
    assert shown["rule"] == "field value"
    assert shown["all"] == "name all"
    assert shown["guards.maxVictims"] == "5"
    assert shown["guards.protect"] == "none"
    assert shown["guards.pdb"] == "prefer"
    assert shown["lostWork.weights.cpu"] == "0.02"
    assert shown["victims"] == "highest priority, earliest start"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_document_has_all_defaults(
    output: str, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("policy", "show", "kube-scheduler", "-o", output) == 0
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "kube-scheduler"},
        "rules": [
            {
                "name": "default",
                "guards": {
                    "pdb": "prefer",
                    "protect": [],
                    "minRuntime": [],
                    "priorityGap": 1,
                    "preemptionDelay": "0s",
                    "waitForAutoscaler": "0s",
                    "cooldown": {"victims": "0s", "preemptors": "0s"},
                    "limits": [],
                    "loopBreaker": "0s",
                    "minAvailable": [],
                    "plugins": [],
                },
                "lostWork": {"weights": {"nvidia.com/gpu": 1, "cpu": 0.02}, "checkpoint": ""},
                "fragmentation": {"resource": "nvidia.com/gpu"},
                "victims": list(VICTIM_CRITERIA[:2]),
                "candidates": list(ALL_CANDIDATE_CRITERIA[:5]),
            }
        ],
    }


def test_the_schema_in_the_repository_is_that_of_the_types(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_policy_schema()
    printed = capsys.readouterr().out
    assert printed == SCHEMA.read_text()
    assert json.loads(printed)["$defs"]["PolicyFile"]["required"] == [
        "apiVersion", "kind", "metadata", "rules",
    ]  # fmt: skip


def some(choices: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(choices), min_size=1, max_size=3, unique=True)


printable = st.characters(exclude_categories=["C", "Zl", "Zp"])
texts = st.text(printable, min_size=1, max_size=8)
durations = st.sampled_from(["30m", "1.5h", "90s", "1h30m", "+2s", "5ms"])
labels = st.fixed_dictionaries(
    {"matchLabels": st.dictionaries(st.sampled_from(["app", "a.b/c"]), st.just("x"), min_size=1)},
    optional={
        "matchExpressions": st.lists(
            st.sampled_from(
                [
                    {"key": "tier", "operator": "In", "values": ["a", "b"]},
                    {"key": "role", "operator": "Exists"},
                    {"key": "role", "operator": "DoesNotExist", "values": []},
                ]
            ),
            max_size=2,
        )
    },
)
SELECTOR: Final = {
    "namespaces": some(["default", "team-a"]),
    "labels": labels,
    "priorityClasses": st.lists(texts, min_size=1, max_size=2),
    "owners": some(["Deployment", "Job", "Pod", "RayCluster"]),
}
selectors = st.fixed_dictionaries({}, optional=SELECTOR)
chosen_pods = selectors.filter(bool)
lost_work = st.fixed_dictionaries(
    {
        "amount": st.floats(0.001, 1e9) | st.integers(1, 5),
        "per": st.sampled_from(["hours", "minutes", "seconds"]),
    }
)


def limits(of: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    by = st.sampled_from(["cluster", "namespace", "owner", "priorityClass"])
    return st.fixed_dictionaries({**of, "per": st.just("1h")}, optional={"by": by})


guards = st.fixed_dictionaries(
    {},
    optional={
        "pdb": st.sampled_from(["strict", "prefer"]),
        "protect": st.lists(st.builds(lambda n, s: {"name": n, **s}, texts, chosen_pods)),
        "minRuntime": st.lists(st.builds(lambda d, s: {"for": d, **s}, durations, selectors)),
        "priorityGap": st.integers(1, 2**31),
        "maxVictims": st.integers(1, 2**31),
        "maxLostWork": lost_work,
        "preemptionDelay": durations | st.just("0"),
        "waitForAutoscaler": durations | st.just("0"),
        "limits": st.lists(
            st.one_of(limits({"victims": st.just(5)}), limits({"lostWork": lost_work})),
            unique_by=lambda limit: limit.get("by", "cluster"),
        ),
    },
)
weights = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "example.com/fpga"]),
    st.integers(1, 10**9).map(lambda n: n / 1000),
    min_size=1,
)
cheapest = st.fixed_dictionaries(
    {"strategy": st.just("cheapest"), "by": st.sampled_from(CHEAPEST_CRITERIA)}
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "guards": guards,
        "lostWork": st.fixed_dictionaries(
            {}, optional={"weights": weights, "checkpoint": st.just("example.com/saved")}
        ),
        "victims": st.one_of(some(VICTIM_CRITERIA), cheapest),
        "candidates": some(ALL_CANDIDATE_CRITERIA),
    },
)


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid policy file."""
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    rules = [{"name": name, **draw(fields)} for name in names]
    for rule in rules[:-1]:
        rule["preemptors"] = draw(chosen_pods)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "own"}, "rules": rules}


def loaded(path: Path, text: bytes) -> PolicyFile:
    path.write_bytes(text)
    return load_policy_file(str(path))


@given(files())
def test_a_policy_that_is_shown_is_the_same_policy(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "shown.yaml"
    file = loaded(path, yaml.safe_dump(document).encode())
    for encode in (msgspec.yaml.encode, msgspec.json.encode):
        assert loaded(path, encode(file)) == file
