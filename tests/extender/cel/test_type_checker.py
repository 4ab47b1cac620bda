"""The types of expressions, from those of their variables."""

from __future__ import annotations

import pytest

from extender.cel.cel_types import DYN, INT, STRING, CelType, list_of, map_of, runtime_name
from extender.cel.type_checker import CheckedExpression, check

PORT = CelType("message", "Self.ports.@idx", (), {"name": STRING})
SELF = CelType(
    "message",
    "Self",
    (),
    {
        "size": INT,
        "ports": list_of(PORT),
        "labels": map_of(STRING, STRING),
        **dict.fromkeys(("namespace", "__namespace__"), STRING),
    },
)
VARIABLES = {"self": SELF, "object": DYN}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("1 + 2", "int"),
        ("[]", "list(dyn)"),
        ("[] + [1]", "list(int)"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("self.ports", "list(Self.ports.@idx)"),
        ("self.ports.map(p, p.name)", "list(string)"),
        ("self.labels.a", "string"),
        ("self.namespace + self.__namespace__", "string"),
        ("self.?size", "optional_type(int)"),
        ("self.?size.orValue(1)", "int"),
        ("self.labels[?'a']", "optional_type(string)"),
        ("[?self.?size]", "list(int)"),
        ("self.ports.transformMap(i, p, p.name)", "map(int, string)"),
        ("self.ports.sortBy(p, p.name)", "list(Self.ports.@idx)"),
        ("object.a.b", "dyn"),
        ("object.a + 1", "int"),
        ("object.a == 1 ? object.b : 'c'", "dyn"),
        ("timestamp('2024-01-01T00:00:00Z')", "google.protobuf.Timestamp"),
        ("null", "null_type"),
        ("type(1)", "type(int)"),
        ("quantity('1')", "kubernetes.Quantity"),
        ("format.named('uuid').value().validate('a')", "optional_type(list(string))"),
        ("b'a' + b'\\xff'", "bytes"),
        ("r'\\d' + '\\u00e9' + '''it's''' + \"\\101\"", "string"),
    ],
)
def test_an_expression_has_a_type(expression: str, found: str) -> None:
    checked = check(expression, VARIABLES)
    assert isinstance(checked, CheckedExpression)
    assert runtime_name(checked.result) == found


def test_an_error_points_to_its_place() -> None:
    assert check("self.size > 1 &&\n\tself.sise > 1", VARIABLES) == (
        "ERROR: <input>:2:6: undefined field 'sise'\n |  self.sise > 1\n | .....^"
    )


@pytest.mark.parametrize("literal", ["9223372036854775808", "7" * 5000, "0x" + "7" * 5000])
def test_an_integer_out_of_range_is_invalid(literal: str) -> None:
    error = check(f"self.size > {literal}", VARIABLES)
    assert isinstance(error, str)
    assert error.startswith("ERROR: <input>:1:13: invalid int literal\n")
