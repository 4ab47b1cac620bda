"""The functions that Kubernetes adds to CEL, each in one or two of upstream's examples."""

from __future__ import annotations

import pytest

from extender.cel.cel_types import DYN
from extender.cel.compilation import ExpressionError, compile_expression
from extender.cel.type_checker import check


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3].isSorted() && !['b', 'a'].isSorted()",
        "[1, 3].sum() == 4 && [1.0, 3.0].sum() == 4.0 && [].sum() == 0",
        "[1, 3].min() == 1 && [1, 3].max() == 3",
        "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1",
        "'tacocat'.indexOf('ac') == 1 && 'tacocat'.lastIndexOf('at') == 5",
        "[1, 2].includes(2) && 'a'.includes('a')",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''",
        "'ab'.matches('^.b$') && matches('a', r'\\pL') && !'\u0661'.matches(r'\\d')",
        "'matches('.matches(r'matches\\(')",
        "'1a2b'.findAll('[0-9]') == ['1', '2'] && '1a2b'.findAll('[0-9]', 1) == ['1']",
        "url('https://user@example.com:80/a?k=v').getHost() == 'example.com:80'",
        "url('https://example.com:80/').getHostname() == 'example.com'",
        "url('https://example.com:80/').getPort() == '80'",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://example.com/path?k1=a&k1=b').getQuery()['k1'] == ['a', 'b']",
        "isURL('https://example.com') && !isURL('a b')",
        f"!isQuantity('{'1' * 90_000}x')",
        "isQuantity('1.3Gi') && !isQuantity('1.3G1')",
        "quantity('1Gi').isGreaterThan(quantity('1000M'))",
        "quantity('50k').isLessThan(quantity('1M'))",
        "quantity('1Ki') == quantity('1024')",
        "quantity('200M').compareTo(quantity('0.2G')) == 0",
        "quantity('50k').add(20).asInteger() == 50020",
        "quantity('50k').sub(quantity('10k')).asApproximateFloat() == 40000.0",
        "quantity('-1').sign() == -1 && !quantity('1500m').isInteger()",
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256')",
        "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0:0:0:0:0:0:1')",
        "ip('127.0.0.1').isLoopback() && ip('8.8.8.8').isGlobalUnicast()",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "cidr('10.1.1.1/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.0/8').ip() == ip('10.0.0.0')",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')",
        "!format.dns1123Label().validate('my-name').hasValue()",
        "format.dns1123Label().validate('My.Name').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nobody').hasValue()",
        "isSemver('1.2.3-alpha') && !isSemver('v1.2')",
        f"!isSemver('{'9' * 20}.0.0') && !isSemver('1.2.{'9' * 5000}')",
        "semver('1.10.0').isGreaterThan(semver('1.9.0'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0'))",
        "semver('1.2.3').minor() == 2",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "'Hi'.lowerAscii() == 'hi' && 'abc'.substring(1) == 'bc' && ' a '.trim() == 'a'",
        "'abab'.replace('a', 'x') == 'xbxb'",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2])",
        "math.greatest(1, 3) == 3",
        "{'a': 1}.?a.hasValue() && !{'a': 1}.?b.hasValue()",
        "[1, 2][?5].orValue(7) == 7",
    ],
)
def test_kubernetes_functions_are_evaluated(expression: str) -> None:
    assert compile_expression(expression).evaluate({}) is True


@pytest.mark.parametrize(
    "expression", ["quantity('x') == quantity('1')", "[].min() == 1", "ip('x') == ip('y')"]
)
def test_an_invalid_argument_is_an_error(expression: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a" * 100_001, "expression code point size exceeds limit: size: 100001, limit 100000"),
        ("(" * 251 + "1" + ")" * 251, "expression recursion limit exceeded: 250"),
        (" || ".join(["self.?a"] * 51), "more than 50 optional selections are not supported"),
        ("[1].all(x, " * 5_000 + "true" + ")" * 5_000, "expression recursion limit exceeded: 250"),
        ("1" + "+1" * 49_000, "more than 5000 operators are not supported"),
    ],
    ids=["size", "depth", "optional selections", "macros", "operators"],
)
def test_an_expression_that_is_too_large_is_refused(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_expression(expression)
    assert str(refused.value) == f"compilation failed: ERROR: <input>:-1:0: {message}"


DEEP = (
    "1" + "+1" * 4_000 + " == 4001",
    " || ".join(["false"] * 4_000) + " || true",
    "self" + ".a" * 4_000,
    "[1]" + "[0]" * 2_000,
    "(" * 90 + "true" + ")" * 90,
    "!(" * 40 + "true" + ")" * 40,
    "[[1].map(x, " * 20 + "x" + ")]" * 20,
)


@pytest.mark.parametrize("expression", DEEP, ids=range(len(DEEP)))
def test_a_deep_expression_is_checked_or_refused(expression: str) -> None:
    checked = check(expression, {"self": DYN})
    assert not isinstance(checked, str) or "recursion limit" in checked


@pytest.mark.parametrize("expression", DEEP, ids=range(len(DEEP)))
def test_a_deep_expression_is_evaluated_or_fails(expression: str) -> None:
    try:
        compile_expression(expression).evaluate({"self": {}})
    except ExpressionError:
        return
