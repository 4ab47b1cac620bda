"""Errors of validation rules are reported when they are defined."""

from __future__ import annotations

import pytest

from extender.cel import parser
from tests.builders import Document
from tests.builders.definitions import DEFINITIONS, INTEGER, definition, record, version
from tests.fakeapi.api_requests import Ask

SPEC = "spec.validation.openAPIV3Schema.properties[spec]"
FIRST_RULE = f"{SPEC}.x-kubernetes-validations[0]"
RULE = f"{FIRST_RULE}.rule"


def ruled(rule: Document, **fields: Document) -> Document:
    spec = record(**(fields or {"size": INTEGER})) | {"x-kubernetes-validations": [rule]}
    return definition(versions=[version(schema=record(spec=spec))])


REFUSED: dict[str, tuple[Document, str, str]] = {
    "a rule without words": (ruled({"rule": " "}), RULE, "Required value: rule is not specified"),
    "a rule about a field that is not there": (
        ruled({"rule": "self.sise > 1"}),
        RULE,
        (
            'Invalid value: {"Rule":"self.sise \\u003e 1","Message":"","MessageExpression":"",'
            '"Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: '
            "ERROR: <input>:1:5: undefined field 'sise'\n | self.sise > 1\n | ....^"
        ),
    ),
    "a rule that is no expression": (
        ruled({"rule": "self.size >"}),
        RULE,
        "compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'",
    ),
    "a rule that is no condition": (
        ruled({"rule": "self.size"}),
        RULE,
        "cel expression must evaluate to a bool",
    ),
    "a reason that there is not": (
        ruled({"rule": "self.size > 1", "reason": "Bad"}),
        f"{FIRST_RULE}.reason",
        (
            'Unsupported value: "Bad": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
        ),
    ),
    "a field path that leads nowhere": (
        ruled({"rule": "self.size > 1", "fieldPath": ".sise"}),
        f"{FIRST_RULE}.fieldPath",
        'Invalid value: ".sise": must be a valid path',
    ),
    "a transition rule of elements without keys": (
        definition(
            spec={
                "sizes": {
                    "type": "array",
                    "items": {**INTEGER, "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
                }
            }
        ),
        f"{SPEC}.properties[sizes].items.x-kubernetes-validations[0].rule",
        (
            'Invalid value: "self >= oldSelf": oldSelf cannot be used on the uncorrelatable '
            f"portion of the schema within {SPEC}.properties[sizes]"
        ),
    ),
}


@pytest.mark.parametrize(("made", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_rule_is_refused(ask: Ask, made: Document, field: str, message: str) -> None:
    status, answer = ask("POST", DEFINITIONS, made)
    assert status == 422, answer
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert field in causes
    assert message in causes[field]


def test_without_the_library_rules_are_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "ENGINE", None)
    status, answer = ask("POST", DEFINITIONS, ruled({"rule": "self.size > 1"}))
    [cause] = answer["details"]["causes"]
    assert (status, cause["field"]) == (422, RULE)
    assert cause["message"] == (
        "Forbidden: CEL expressions need the library common-expression-language: pip install "
        "'reprieve[cel]'"
    )
    assert ask("POST", DEFINITIONS, definition())[0] == 201
