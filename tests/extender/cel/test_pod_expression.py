"""Expressions of policies over a pod: their values, and their errors in one line."""

from __future__ import annotations

import pytest

from extender.cel import parser
from extender.cel.pod_expression import PodExpressionError, compile_pod_expression
from policies.kubernetes.default_selector import PodOwner
from policies.preemption.costs.pod_cost import EvaluationError
from tests.builders import pod

WEB = pod(
    "web-1",
    on="node-7",
    uid="u-1",
    namespace="shop",
    labels={"team": "a", "app.io/tier": "front"},
    annotations={"a/b": "v"},
    priority=5,
    priority_class="high",
    owner=PodOwner("ReplicaSet", "web"),
    ready=True,
    restarts=2,
    cpu="2",
    memory="1Ki",
    others={"example.com/gpu": "3"},
    group="gang",
)


@pytest.mark.parametrize(
    "source",
    [
        'pod.name == "web-1" && pod.namespace == "shop" && pod.uid == "u-1"',
        'pod.labels["team"] == "a" && pod.labels.`app.io/tier` == "front"',
        'pod.labels.all(key, key.startsWith("team") || key.contains("/"))',
        'pod.priority > 4 && pod.priorityClass == "high" && pod.group == "gang"',
        'pod.owner.kind == "ReplicaSet" && pod.owner.name == "web" && pod.node == "node-7"',
        "pod.ready && pod.restarts == 2",
        'pod.requests["cpu"] == 2000 && pod.requests["memory"] == 1024',
        'pod.requests["example.com/gpu"] == 3 && pod.requests["ephemeral-storage"] == 0',
        'pod.requests[?"example.com/fpga"].orValue(0) == 0',
        'pod.labels["missing"] == "a" || true',
        "[1].exists(pod, pod == 1)",
    ],
)
def test_an_expression_reads_the_fields_of_a_pod(source: str) -> None:
    assert compile_pod_expression(source, bool).evaluate(WEB) is True


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('pod.requests["cpu"] / 1000 + 10 * pod.requests["example.com/gpu"]', 32),
        ("pod.ready ? pod.restarts : -1", 2),
        ("[pod.priority, pod.restarts].max()", 5),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_an_expression_has_an_integer(source: str, value: int) -> None:
    assert compile_pod_expression(source, int).evaluate(WEB) == value


def test_a_pod_without_an_owner_and_a_node_has_empty_texts() -> None:
    source = 'pod.owner.kind == "" && pod.owner.name == "" && pod.node == ""'
    assert compile_pod_expression(source, bool).evaluate(pod()) is True


@pytest.mark.parametrize(
    "source",
    [
        'pod.annotations["a/b"] == "v"',
        '"a/b" in pod.annotations',
        'pod.annotations.`a/b` == "v"',
        'pod.annotations[?"a/b"].orValue("") == "v"',
        "pod.annotations.?`a/b`.hasValue()",
        '[1].all(n, "a/b" in pod.annotations)',
    ],
)
def test_an_expression_names_the_annotations_that_it_reads(source: str) -> None:
    assert compile_pod_expression(source, bool).annotations == {"a/b"}


def test_an_expression_without_annotations_names_none() -> None:
    assert not compile_pod_expression('{"annotations": {"a": 1}}.annotations.a', int).annotations


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ('pod.restarts < "a"', "14: found no matching overload for '_<_' applied to"),
        ('true &&\n  pod.size == "a"', "6: undefined field 'size'"),
        ("likes(pod.name)", "6: undeclared reference to 'likes'"),
        ("pods.name", "1: undeclared reference to 'pods'"),
        ("pod.restarts <", "15: Syntax error: mismatched input '<EOF>'"),
        ("", "1: Syntax error: mismatched input '<EOF>'"),
        ("pod.restarts", "1: expected a result of type bool, found int"),
        ("dyn(true)", "1: expected a result of type bool, found dyn"),
        ("pod.restarts == 9223372036854775808", "17: invalid int literal"),
        ("pod.restarts == 1u", "14: found no matching overload"),
        ('"a".matches("(")', "13: invalid matches argument"),
        ('pod.annotations[pod.name] == "v"', "4: annotations are read by literal keys only"),
        ("pod.annotations.all(key, true)", "4: annotations are read by literal keys only"),
        ('pod.annotations == {"a": "b"}', "4: annotations are read by literal keys only"),
        ('[pod].all(p, "k" in p.annotations)', "2: pod has to be followed by the name of a field"),
        ('"k" in dyn(pod).annotations', "12: pod has to be followed by the name of a field"),
        ("pod == pod", "1: pod has to be followed by the name of a field"),
        ('pod.?node.orValue("") == ""', "1: pod has to be followed by the name of a field"),
    ],
)
def test_an_error_names_its_line_and_column(source: str, error: str) -> None:
    with pytest.raises(PodExpressionError) as raised:
        compile_pod_expression(source, bool)
    line = source.count("\n") + 1
    assert str(raised.value).startswith(f"line {line}, column {error}")
    assert "\n" not in str(raised.value)


def test_another_type_of_result_is_expected() -> None:
    with pytest.raises(PodExpressionError, match="expected a result of type int, found bool"):
        compile_pod_expression("pod.ready", int)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("(" * 3000 + "true" + ")" * 3000, "expression recursion limit exceeded"),
        ("!" * 200_000 + "true", "expression code point size exceeds limit"),
        ("1" + "+1" * 3000 + " == 1", "expression recursion limit exceeded"),
        ("pod.labels.all(a, " * 200 + "true" + ")" * 200, "Recursion limit of 96 exceeded"),
        ("pod.restarts == " + "1" * 90_000, "invalid int literal"),
    ],
    ids=["brackets", "length", "operators", "macros", "literal"],
)
def test_a_hostile_source_is_an_error_in_one_line(source: str, error: str) -> None:
    with pytest.raises(PodExpressionError, match=error) as raised:
        compile_pod_expression(source, bool)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('pod.requests["example.com/fpga"]', "no such key: example.com/fpga"),
        ('size(pod.annotations["c"])', "no such key: c"),
        ("pod.restarts / (pod.priority - 5)", "division by zero"),
        ("pod.restarts * 9223372036854775807", "Arithmetic overflow in 'mul'"),
        ("[9223372036854775807, pod.restarts].sum()", "integer overflow"),
        ("int(pod.name)", "Function 'int' error: string parse error"),
        ("1 + dyn(pod.name)", "no such overload"),
    ],
)
def test_an_evaluation_that_fails_has_a_reason_in_one_line(source: str, reason: str) -> None:
    expression = compile_pod_expression(source, int)
    with pytest.raises(EvaluationError) as raised:
        expression.evaluate(WEB)
    assert str(raised.value).startswith(reason)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("operand", ["pod.labels", "[1, 2, 3, 4, 5, 6, 7, 8]"])
def test_an_evaluation_that_would_be_slow_fails(operand: str) -> None:
    expression = compile_pod_expression(f"{operand}.all(a, " * 9 + "true" + ")" * 9, bool)
    with pytest.raises(EvaluationError, match="actual cost limit exceeded"):
        expression.evaluate(WEB)


def test_a_label_that_is_not_unicode_is_an_error() -> None:
    expression = compile_pod_expression('string(pod.labels["a"]) == ""', bool)
    with pytest.raises(EvaluationError, match="Failed to convert variable 'pod'"):
        expression.evaluate(pod(labels={"a": "\ud800"}))


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "ENGINE", None)
    with pytest.raises(PodExpressionError, match=r"pip install 'reprieve\[cel\]'"):
        compile_pod_expression("true", bool)
