"""Scripts: their meaning, and the errors of invalid ones."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fakeapi.controlplane.kubelet.script_parser import (
    ALWAYS,
    load_script,
    parse_node_script,
    parse_pod_script,
    parse_script,
)
from fakeapi.controlplane.kubelet.scripts import (
    DEFAULT_NODE_SCRIPT,
    DEFAULT_POD_SCRIPT,
    EMPTY_SCRIPT,
    Exit,
    LogWrite,
    ScriptError,
    SimulationScript,
    Stop,
    Transition,
    next_transition,
    script_error,
    state_at,
)
from fakeapi.controlplane.kubelet.usage_curves import SECOND, CurveStep

MI = 2**20


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        *(("0", 0), ("1s", SECOND), ("1m30s", 90 * SECOND), ("500ms", SECOND // 2)),
        *(("1.5h", 5400 * SECOND), ("2us3ns", 2003), (2, 2 * SECOND), (0.25, SECOND // 4)),
        *(("", None), ("5x", None), ("1s ", None), ("-1s", None), (-1, None), (1e10, None)),
        *(("s", None), ("1s2", None), (float("nan"), None)),
    ],
)
def test_durations(text: str | float, nanoseconds: int | None) -> None:
    script = yaml.safe_dump({"start": text})
    if nanoseconds is None:
        with pytest.raises(ScriptError, match="start: expected"):
            parse_pod_script(script)
    else:
        assert parse_pod_script(script).start == nanoseconds


def test_stages_follow_each_other() -> None:
    script = parse_pod_script(
        """
        start: 2s
        stages:
        - {memory: 50Mi, volumes: {data: 1Mi}, log: "a\\nb"}
        - {after: 5s, ready: true, log: ready}
        - {after: 1m, memory: 300Mi, over: 30s}
        - {after: 10s, exit: 3, reason: Broken, message: it broke}
        """
    )
    [run] = script.default.runs
    assert script.start == 2 * SECOND
    assert run.readiness == (Transition(5 * SECOND, state=True),)
    steps = (CurveStep(0, 50 * MI), CurveStep(65 * SECOND, 300 * MI, 30 * SECOND))
    assert run.steps == {"memory": steps}
    assert run.volumes == {"data": (CurveStep(0, MI),)}
    assert run.exit == Exit(75 * SECOND, 3, "Broken", "it broke")
    assert run.log == (LogWrite(0, "a\nb"), LogWrite(5 * SECOND, "ready"))


def test_containers_may_have_scripts_of_their_own() -> None:
    script = parse_pod_script(
        "{runs: [[{exit: 1}], []], containers: {b: {stop: {after: 3s, exit: 4}}, c: {stop: 2}}}"
    )
    a, b, c = (script.of(name, ends=False) for name in "abc")
    assert [run.exit for run in a.runs] == [Exit(0, 1), None]
    assert (a.run(0), a.run(1), a.run(9)) == (*a.runs, a.runs[1])
    assert (a.stop, b.stop, c.stop) == (Stop(), Stop(3 * SECOND, 4), Stop(2 * SECOND))
    assert b.runs[0].exit is None


def test_an_init_container_without_a_script_succeeds() -> None:
    script = parse_pod_script("{start: 2s, stages: [{exit: 1}], containers: {i: {stages: []}}}")
    assert script.of("other", ends=True).runs[0].exit == Exit(2 * SECOND)
    assert script.of("i", ends=True).runs[0].exit is None


@pytest.mark.parametrize(("failures", "count"), [("2", 2), ("always", ALWAYS)])
def test_failed_pulls(failures: str, count: int) -> None:
    assert parse_pod_script(f"{{failedPulls: {failures}}}").default.failed_pulls == count


def test_scripts_of_nodes() -> None:
    script = parse_node_script(
        "{stages: [{after: 5m, silent: true}, {after: 90s, silent: false, disk: 1Gi},"
        " {ready: false}], imageDisk: 50Gi}"
    )
    assert script.silence == (
        Transition(300 * SECOND, state=True),
        Transition(390 * SECOND, state=False),
    )
    assert script.readiness == (Transition(390 * SECOND, state=False),)
    assert script.steps == {"disk": (CurveStep(390 * SECOND, 1024 * MI),)}
    assert script.image_disk == 50 * 1024 * MI
    assert [state_at(script.silence, at * SECOND) for at in (0, 300, 389, 390)] == [
        *(None, True, True, False)
    ]
    assert next_transition(script.silence, 300 * SECOND) == 390 * SECOND
    assert next_transition(script.silence, 390 * SECOND) is None


MATCHING = parse_script(
    """
    pods:
    - {match: {labels: {app: "web*"}, namespaces: [shop]}, start: 2s}
    - {match: {names: ["job-*", "task"]}, start: 3s}
    - {match: {nodes: [slow]}, start: 4s}
    nodes:
    - {match: {labels: {zone: a}}, imageDisk: 1Gi}
    - {match: {names: ["n*"]}, imageDisk: 2Gi}
    """
)


@pytest.mark.parametrize(
    ("name", "namespace", "node", "labels", "seconds"),
    [
        ("x", "shop", "n", {"app": "web-1"}, 2),
        ("x", "other", "n", {"app": "web-1"}, 1),
        ("x", "shop", "n", {"app": "db"}, 1),
        ("x", "shop", "n", None, 1),
        ("job-1", "shop", "n", {"app": "web"}, 2),
        ("job-1", "other", "slow", None, 3),
        ("task", "other", "n", None, 3),
        ("other", "other", "slow", None, 4),
    ],
)
def test_the_first_matching_script_applies(
    name: str, namespace: str, node: str, labels: dict[str, str] | None, seconds: int
) -> None:
    assert MATCHING.for_pod(name, namespace, node, labels).start == seconds * SECOND


@pytest.mark.parametrize(
    ("name", "labels", "gibibytes"), [("n1", {"zone": "a"}, 1), ("n1", {}, 2), ("m", None, 0)]
)
def test_scripts_match_nodes(name: str, labels: dict[str, str] | None, gibibytes: int) -> None:
    assert MATCHING.for_node(name, labels).image_disk == gibibytes * 2**30


def test_nodes_are_registered_by_numbered_names() -> None:
    labels = {"zone": ["a", "b"], "team": "x"}
    nodes = {"name": "node-{:02}", "count": 3, "labels": labels, "capacity": {"cpu": 8}}
    [registration] = load_script({"register": [nodes]}).register
    assert registration.names == ("node-00", "node-01", "node-02")
    assert registration.labels == {"zone": ("a", "b"), "team": ("x",)}
    assert registration.capacity == {"cpu": "8"}


@pytest.mark.parametrize("empty", ["", b"", {}, "# nothing"])
def test_an_empty_document_is_the_empty_script(empty: Any) -> None:
    assert load_script(empty) == EMPTY_SCRIPT == SimulationScript()
    assert EMPTY_SCRIPT.for_pod("p", "d", "n", None) is DEFAULT_POD_SCRIPT
    assert EMPTY_SCRIPT.for_node("n", None) is DEFAULT_NODE_SCRIPT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pods: [{start: 5x}]", "pods[0].start: expected a duration such as 1m30s, got '5x'"),
        (
            "pods: [{stages: [{after: -1}]}]",
            "pods[0].stages[0].after: expected 0 to 1000000000 seconds, got -1",
        ),
        (
            "pods: [{stages: [{exit: 1}, {ready: true}]}]",
            "pods[0].stages[0].exit: expected to be in the last stage",
        ),
        ("podz: []", "(the document): object contains unknown field podz"),
        (
            "pods: [{stages: [{redy: true}]}]",
            "pods[0].stages[0]: object contains unknown field redy",
        ),
        (
            "pods: [{stages: [{memory: zz}]}]",
            (
                "pods[0].stages[0].memory: 'zz' is not a quantity; "
                "expected a number such as 100m, 2 or 1.5Gi"
            ),
        ),
        (
            "nodes: [{stages: [{disk: -1}]}]",
            "nodes[0].stages[0].disk: expected an amount that is not negative, got -1",
        ),
        (
            "pods: [{stages: [], runs: []}]",
            "pods[0].runs: expected either stages or runs, got both",
        ),
        ("pods: [{runs: []}]", "pods[0].runs: expected at least one run"),
        (
            "pods: [{containers: {a: {failedPulls: never}}}]",
            (
                "pods[0].containers.a.failedPulls: "
                "expected a number of failures or always, got 'never'"
            ),
        ),
        (
            "register: [{name: a, count: 2}]",
            "register[0].name: expected a place for the number, {}, in it",
        ),
        (
            "register: [{name: 'a{}{}', count: 2}]",
            "register[0].name: expected one place for a number, such as {} or {:03}",
        ),
        (
            "register: [{name: 'a{:999999999}'}]",
            "register[0].name: expected one place for a number, such as {} or {:03}",
        ),
        (
            "register: [{name: 'a{}', count: 9223372036854775807}]",
            "register[0].count: 9223372036854775807; expected 0 to 100000",
        ),
        ("- 1", "(the document): expected object, got array"),
        (
            "pods: {",
            (
                "neither YAML nor JSON: while parsing a flow node did not find expected node "
                'content in "<unicode string>", line 2, column 1'
            ),
        ),
    ],
)
def test_an_invalid_script_is_reported_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse_script(text)
    assert str(error.value) == message


def test_an_invalid_annotation_is_reported() -> None:
    annotations = {"kubelet.fakeapi/script": "{start: x}"}
    message = "start: expected a duration such as 1m30s, got 'x'"
    assert script_error(annotations, parse_pod_script) == message
    assert script_error({}, parse_pod_script) == script_error(None, parse_pod_script) == ""
    assert script_error({"kubelet.fakeapi/script": "{}"}, parse_pod_script) == ""
