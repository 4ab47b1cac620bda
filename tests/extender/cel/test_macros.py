"""Macros of two variables, and fields in backticks."""

from __future__ import annotations

from typing import Any

import pytest

from extender.cel.compilation import (
    ExpressionError,
    compile_expression,
)

GIVEN: dict[str, Any] = {
    "list": [3, 5],
    "map": {"a": 1, "b": 2},
    "labels": {"app.io/name": "web"},
    "self": {"a__dash__b": 1},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
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
        ("list.sortBy(x, -x)", [5, 3]),
        ("map.?a.optMap(x, x + 1).orValue(0)", 2),
        ("map.?z.optMap(x, x + 1).orValue(0)", 0),
        ("map.?a.optFlatMap(x, map.?b).orValue(0) + map.?z.optFlatMap(x, map.?b).orValue(4)", 6),
        ("[map.?a, map.?z].unwrapOpt() + optional.unwrap([map.?b])", [1, 2]),
        ("'%s is %d, %.1f%% and %x'.format(['a', 1, 2.25, 255])", "a is 1, 2.2% and ff"),
        ("[?map.?a, 5, ?map.?c]", [1, 5]),
        ("[1 in [?map.?a], [?optional.of(true ? [2] : [3])][0][0]]", [True, 2]),
        ("{'x': 1, ?('y' + 'z'): map.?b, ?'w': map.?c}", {"x": 1, "yz": 2}),
        ("{?'x': map.?a, ?'w': map.?z, }.size() + [?map.?z, ].size()", 1),
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


@pytest.mark.parametrize("expression", ["{?'x'}", "{?'x': map.?a, 'y'}", "{?}", "[?]", "{?(x}"])
def test_an_optional_element_without_a_value_is_an_error(expression: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(expression).evaluate(GIVEN)
