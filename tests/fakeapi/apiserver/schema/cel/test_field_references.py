"""References of an expression to missing fields are found before it is evaluated."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.schema.cel.compilation import known_functions
from fakeapi.apiserver.schema.cel.field_references import reference_error
from fakeapi.apiserver.schema.structural.schema_tree import node_of
from tests.builders.definitions import ANYTHING, INTEGER, TEXT, record

SCHEMA = node_of(
    record(
        size=INTEGER,
        ports={"type": "array", "items": record(name=TEXT)},
        labels={"type": "object", "additionalProperties": TEXT},
        free=ANYTHING,
    )
)


def error_of(expression: str) -> str | None:
    found = reference_error(expression, {"self": SCHEMA}, known_functions(), "boolean")
    return None if found is None else found.partition("ERROR: <input>:")[2].partition("\n")[0]


@pytest.mark.parametrize(
    "expression",
    [
        "self.size > 1",
        "self.ports.all(p, p.name != '')",
        "self.ports[0].name == 'x'",
        "self.labels.a == 'x' && 'b' in self.labels",
        "self.free.anything.at.all == 1",
        "self.free.filter(f, f > 1).all(g, g > 2)",
        "[1, 2].exists(n, n == self.size)",
        "self.ports.all(p, self.ports.exists(q, q.name == p.name))",
        "self.ports.filter(p, p.name == 'a').size() > 0",
        "type(self.size) == int",
        "self.size in [1, 2]",
        "quantity('1').isInteger()",
    ],
)
def test_existing_fields_may_be_used(expression: str) -> None:
    assert error_of(expression) is None


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("self.sise > 1", "1:5: undefined field 'sise'"),
        ("self.ports.all(p, p.nme != '')", "1:20: undefined field 'nme'"),
        ("self.ports[0].nme == 'x'", "1:14: undefined field 'nme'"),
        ("other > 1", "1:1: undeclared reference to 'other' (in container '')"),
        ("self.size.huge()", "1:15: undeclared reference to 'huge' (in container '')"),
        ("frob(self)", "1:5: undeclared reference to 'frob' (in container '')"),
        ("self.size > 1 &&\n other", "2:2: undeclared reference to 'other' (in container '')"),
        ("self.size.more > 1", "1:10: undefined field 'more'"),
    ],
)
def test_a_missing_field_is_reported(expression: str, error: str) -> None:
    assert error_of(expression) == error
