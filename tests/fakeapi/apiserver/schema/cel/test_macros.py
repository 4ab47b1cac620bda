"""Macros of two variables, cel.bind and fields in backticks."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.cel.compilation import (
    ExpressionError,
    compile_expression,
    expression_error,
)
from fakeapi.apiserver.schema.structural.schema_tree import node_of
from tests.builders.definitions import INTEGER, TEXT, record

GIVEN: dict[str, Any] = {
    "list": [3, 5],
    "map": {"a": 1, "b": 2},
    "labels": {"app.io/name": "web"},
    "self": {"a__dash__b": 1},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("cel.bind(x, 1, x + 1)", 2),
        ("cel.bind(x, list, cel.bind(y, x[0], y + x[1]))", 8),
        ("list.all(i, v, v > i)", True),
        ("list.all(i, v, i > 0)", False),
        ("list.exists(i, v, i == 1 && v == 5)", True),
        ("list.exists_one(i, v, v > 1)", False),
        ("list.existsOne(i, v, v == 3)", True),
        ("map.all(k, v, k < 'c' && v < 3)", True),
        ("map.exists(k, v, k == 'b' && v == 2)", True),
        ("list.transformList(i, v, i + v)", [3, 6]),
        ("list.transformList(i, v, i > 0, v)", [5]),
        ("map.transformMap(k, v, v + 1)", {"a": 2, "b": 3}),
        ("map.transformMap(k, v, v > 1, k)", {"b": "b"}),
        ("map.transformMapEntry(k, v, {v: k})", {1: "a", 2: "b"}),
        ("list.transformMap(i, v, v)", {0: 3, 1: 5}),
        ("[[1], [2]].all(i, row, row.all(j, v, v == i + j + 1))", True),
        ("map.filter(k, map[k] > 1).all(i, k, k == 'b')", True),
        ("labels.`app.io/name`", "web"),
        ("has(labels.`app.io/name`)", True),
        ("has(labels.`app.io/other`) || 'x' in labels", False),
        ("labels.?`app.io/other`.orValue('none')", "none"),
        ("self.`a-b`", 1),
        ("'`' + \"a.`b`\"", "`a.`b`"),
    ],
)
def test_an_expression_has_its_value(expression: str, value: object) -> None:
    assert compile_expression(expression).evaluate(GIVEN) == value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("labels.`missing`", "no such key: missing"),
        ("list.transformMapEntry(i, v, {'a': v})", "insert failed: key a already exists"),
    ],
)
def test_an_error_is_that_of_upstream(expression: str, error: str) -> None:
    with pytest.raises(ExpressionError, match=error):
        compile_expression(expression).evaluate(GIVEN)


SCHEMA = node_of(
    record(
        ports={"type": "array", "items": record(name=TEXT, port=INTEGER)},
        labels={"type": "object", "additionalProperties": TEXT},
    )
)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("self.ports.all(i, p, p.port > i)", ""),
        ("self.ports.all(i, p, p.prt > i)", "1:23: undefined field 'prt'"),
        ("cel.bind(n, self.ports, n.size() > 1)", ""),
        ("cel.bind(n, self.prts, n.size() > 1)", "1:17: undefined field 'prts'"),
        ("self.labels.`a/b` == 'c'", ""),
        ("self.labels.all(k, v, w)", "1:23: undeclared reference to 'w' (in container '')"),
    ],
)
def test_references_are_checked(expression: str, error: str) -> None:
    found = expression_error(expression, {"self": SCHEMA}, "boolean") or ""
    assert found.partition("ERROR: <input>:")[2].partition("\n")[0] == error
