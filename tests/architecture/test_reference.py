"""The generated reference has every key, command, metric and reason of an Event."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from docs.hooks import GENERATED, ROOT
from docs.reference import commands, configuration, events, metrics
from docs.reference.tables import table
from extender.config.component_config import Config
from extender.config.policy_file import PolicyFile
from extender.config.preemption_policy import find_policy
from extender.observability.metrics import Metrics

# By their functions, the position of the reason of an Event in a call.
RECORDERS: Final = {
    "normal": 1, "warning": 1, "_record_event": 1, "_record_warning": 1, "PodEvent": 1, "Event": 1,
    "Rejection": 0, "_predicate_failure": 0,
}  # fmt: skip
COMPONENTS: Final = (
    "extender/controllers", "extender/eviction", "extender/kube", "extender/observability",
    "fakeapi/controlplane", "policies/workloadspread",
)  # fmt: skip
_REASON: Final = re.compile(r"[A-Z][A-Za-z]+")


def documented(name: str) -> str:
    text = import_module(GENERATED[f"reference/{name}.md"]).page()
    assert isinstance(text, str)
    return text


def names(kind: Any) -> Iterator[str]:
    """Yield the keys of a struct and of all structs in its fields, as a file has them."""
    pending = [msgspec.inspect.type_info(kind)]
    while pending:
        each = pending.pop()
        if isinstance(each, msgspec.inspect.StructType):
            if each.tag is None:  # the arguments of plugins are Kubernetes' own
                yield from (field.encode_name for field in each.fields)
                pending += [field.type for field in each.fields]
        elif isinstance(each, msgspec.inspect.UnionType):
            pending += each.types
        elif isinstance(each, msgspec.inspect.VarTupleType):
            pending.append(each.item_type)


@pytest.mark.parametrize("kind", [Config, PolicyFile])
def test_every_key_of_the_configuration_is_there(kind: type[msgspec.Struct]) -> None:
    words = set(re.findall(r"\w+", documented("configuration")))
    assert {*names(kind)} - words == set()


def test_every_key_has_a_meaning() -> None:
    known = configuration.meanings()
    without = [
        key.path for key in configuration.keys(Config) if not configuration.meaning(key.path, known)
    ]
    assert without == []


def test_the_policy_file_that_is_shown_is_valid(tmp_path: Path) -> None:
    shown = documented("configuration").partition("```yaml\n")[2].partition("```")[0]
    path = tmp_path / "policy.yaml"
    path.write_text(f"{shown}- name: others\n")
    policy = find_policy(str(path))
    assert [rule.name for rule in policy.rules] == ["interactive"]


@pytest.mark.parametrize(
    ("path", "type_", "default"),
    [
        ("port", "integer from 0 to 65535", "`8888`"),
        ("search", "`offered` or `cluster`", '`"cluster"`'),
        ("tls.certificate", "string", "required"),
        ("limits.idleSeconds", "number above 0", "`120`"),
        ("featureGates", "map of string to boolean", "`{}`"),
        ("managedResources", "list of object (`name`, `ignoredByScheduler`)", "`[]`"),
    ],
)
def test_a_key_has_its_type_and_default(path: str, type_: str, default: str) -> None:
    assert configuration.Key(path, type_, default) in list(configuration.keys(Config))


def test_every_command_is_there_with_its_options() -> None:
    text = documented("commands")
    every = list(commands.commands())
    assert {"reprieve serve", "reprieve fakeapi", "reprieve explain preempt"} <= {
        each.name for each in every
    }
    for each in every:
        section = text.partition(f"\n## {each.name}\n")[2].partition("\n## ")[0]
        options = {option for parameter in each.command.params for option in parameter.opts}
        assert each.command.help in section
        assert [
            option for option in options if option.startswith("-") and option not in section
        ] == []


def test_every_metric_that_an_extender_exposes_is_there() -> None:
    listed = {row.name for row in metrics.extender_metrics()}
    exposed = re.findall(r"^# TYPE (\S+)", Metrics().exposition().decode(), re.MULTILINE)
    assert {name for name in exposed if not name.endswith("_created")} <= listed
    assert {"reprieve_connections", "reprieve_certificate_trouble", "reprieve_build_info"} <= listed


def test_metrics_have_their_labels() -> None:
    every = [
        *metrics.extender_metrics(), *metrics.controller_metrics(), *metrics.fakeapi_metrics(),
    ]  # fmt: skip
    labels = {row.name: row.labels for row in every}
    assert labels["reprieve_victims_by_class_total"] == ("namespace", "priority_class")
    assert labels["reprieve_connections_cut_total"] == ("phase",)
    assert labels["workloadspread_webhook_seconds"] == ("path",)
    assert labels["apiserver_flowcontrol_nominal_limit_seats"] == ("priority_level",)
    assert all(row.meaning and row.type != "unknown" for row in every)


def test_the_page_about_operations_names_metrics_that_exist() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    listed = {row.name for row in metrics.extender_metrics()}
    named = set(re.findall(r"`(reprieve_[a-z_]+)(?:\{[^`]*)?`", page))
    assert named - listed == set()
    assert {name for name in listed if name.startswith("reprieve_")} - named == set()


def recorded_reasons() -> Iterator[str]:
    """Yield the reasons in calls that record Events, as far as they are written there."""
    for component in COMPONENTS:
        for path in (ROOT / component).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield from reasons_of(node)


def reasons_of(call: ast.Call) -> Iterator[str]:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    place = RECORDERS.get(name, len(call.args))
    if place < len(call.args):
        reason = call.args[place]
        if isinstance(reason, ast.Constant) and _REASON.fullmatch(str(reason.value)):
            yield str(reason.value)


def test_every_reason_of_an_event_is_there() -> None:
    listed = {each.reason for group in events.EVENTS.values() for each in group}
    found = set(recorded_reasons())
    assert {"Scheduled", "Preempted", "VictimsNamed", "NodePorts", "BackOff"} <= found
    assert found - listed == set()


def test_every_listed_reason_is_in_the_code() -> None:
    sources = "".join(
        path.read_text()
        for folder in ("extender", "fakeapi", "policies")
        for path in (ROOT / folder).rglob("*.py")
    )
    listed = {each.reason.rstrip("…") for group in events.EVENTS.values() for each in group}
    assert [reason for reason in listed if f'"{reason}' not in sources] == []


@pytest.mark.parametrize("name", ["configuration", "commands", "metrics", "events"])
def test_a_page_is_the_same_in_every_build(name: str) -> None:
    assert documented(name) == documented(name)


def test_a_bar_does_not_end_a_cell() -> None:
    assert table(("a", "b"), [("x|y", "two\nlines")]) == (
        "| a | b |\n| --- | --- |\n| x\\|y | two lines |\n"
    )
