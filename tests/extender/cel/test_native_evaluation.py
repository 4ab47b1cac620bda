"""Expressions that are evaluated without the library: they have the values that it returns."""

from __future__ import annotations

from typing import Any

import pytest

from extender.cel.compilation import (
    NOT_NATIVE,
    Expression,
    ExpressionError,
    known_functions,
    new_context,
)

GIVEN: dict[str, Any] = {
    "object": {
        "name": "web",
        "size": 3,
        "on": True,
        "ratio": 1.5,
        "none": None,
        "labels": {"app": "web", "tier": "front"},
        "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:latest"}],
    }
}


def by_library(expression: str) -> object:
    context = new_context()
    for name, function in known_functions().items():
        context.add_function(name, function)
    for name, value in GIVEN.items():
        context.add_variable(name, value)
    try:
        return Expression(expression).evaluate_in(context)
    except ExpressionError as error:
        return str(error)


@pytest.mark.parametrize(
    "expression",
    [
        "object.name == 'web' && object.size != 4 && object.none == null",
        "object.size > 2 ? object.labels['app'] : 'none'",
        "object.size <= 3 || object.missing",
        "object.containers.map(c, c.?name).size() + [object.?name].size() == 3",
        "object.containers.map(c, c.?missing)[0].hasValue()",
        "!object.on || object.ratio >= 1.5",
        "has(object.name) && !has(object.missing) && 'app' in object.labels",
        "object.name in ['web', 'db']",
        "object.?labels.?app.orValue('x') + object.?missing.below.orValue('y')",
        "object.?labels.hasValue() && !object.?missing.?x.hasValue()",
        "object.containers.all(c, c.image.contains(':'))",
        "object.containers.all(c, !c.image.endsWith(':latest'))",
        "object.containers.exists(c, c.name.startsWith('b'))",
        "object.containers.exists(c, c.name == 'z')",
        "object.containers.filter(c, c.name != 'a').map(c, c.image)",
        "object.containers.map(c, c.name == 'a', c.image)",
        "object.containers.all(i, c, i < 2 && c.name.matches('^[ab]$'))",
        "object.labels.all(k, v, k.size() + 0 > 2 || v == '')",
        "object.labels.exists(k, object.labels[k] == 'front')",
        "object.containers.all(c, object.containers.exists(d, d.name == c.name))",
        "object.containers.map(c, object.containers.filter(c, c.name == 'a').map(c, c.name))",
        "size(object.containers) == 2 && object.containers[1].name == 'b'",
        "[object.name] + ['db']",
        "quantity('1').isLessThan(quantity('1500m')) && isIP('1.2.3.4')",
        "object.containers.all(c, c.size > 1) || true",
        "object.size == 3.0",
        "object.size + 1 == 4",
        "[-7 / 2, 7 / -2, -7 / -2, -7 % 2, 7 % -2, -7 % -2] == [-3, -3, 3, -1, 1, -1]",
        "object.size * 2 - 9 / object.size",
        "object.size + 9223372036854775807",
        "-object.size * 4611686018427387904",
        "object.size % (object.size - 3)",
        "1u - 2u",
        "object.ratio + 1",
        "object.on == 1",
        "object.missing.below",
        "object.containers[2].name",
        "object.name.all(c, true)",
        "object.size && true",
        "object.containers.exists_one(c, c.name == 'a')",
    ],
)
def test_an_expression_has_the_value_that_the_library_returns(expression: str) -> None:
    found: object
    try:
        found = Expression(expression).evaluate(GIVEN)
    except ExpressionError as error:
        found = str(error)
    assert found == by_library(expression)


def test_a_common_expression_needs_no_library() -> None:
    expression = Expression("object.containers.all(c, c.image != object.name || 6 / 4 * 5 < 4)")
    assert expression.evaluate_natively({**GIVEN}) is True


@pytest.mark.parametrize(
    "expression", ["object.size / 0 == 1", "object.missing", "object[0]", "object.?name"]
)
def test_an_error_is_left_to_the_library(expression: str) -> None:
    assert Expression(expression).evaluate_natively({**GIVEN}) is NOT_NATIVE
