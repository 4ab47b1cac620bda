"""References of an expression to undeclared names, functions and fields; field paths of rules.

The library finds these errors only when it evaluates the branch that has them, but a definition
must be rejected when it is written. One pass over the tokens finds undeclared names, unknown
functions, and fields that the schema does not have. The type of a call's result is not known, nor
that of a selection from it. Paths are resolved in the schema:

    .spec.size    .spec['size']    .labels['app.io/name']

Sources: github.com/google/cel-go/checker (errors.go) for the messages; ValidFieldPath in
k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from fakeapi.apiserver.schema.cel.macros import has_two_variables
from fakeapi.apiserver.schema.cel.parser import (
    MACROS,
    TWO_VARIABLE_MACROS,
    Token,
    closing_index,
    token_at,
    tokenize,
)
from fakeapi.apiserver.schema.cel.values import escape
from fakeapi.apiserver.schema.structural.schema_tree import SchemaNode

_LITERALS: Final = frozenset(("true", "false", "null", "in"))
_TYPES: Final = frozenset(
    [
        "bool",
        "bytes",
        "double",
        "duration",
        "dyn",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "timestamp",
        "type",
        "uint",
    ]
)
_NATIVE: Final = frozenset(
    [
        "bool",
        "bytes",
        "contains",
        "double",
        "duration",
        "dyn",
        "endsWith",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getFullYear",
        "getHours",
        "getMilliseconds",
        "getMinutes",
        "getMonth",
        "getSeconds",
        "has",
        "hasValue",
        "int",
        "matches",
        "none",
        "of",
        "ofNonZeroValue",
        "or",
        "orValue",
        "size",
        "startsWith",
        "string",
        "timestamp",
        "type",
        "uint",
        "value",
    ]
)

Scope = dict[str, SchemaNode | None]


Spelling = Callable[[str], str | None]
"""Returns a field's name as expressions spell it; None if they cannot."""


def reference_error(
    expression: str,
    variables: Scope,
    functions: Collection[str],
    result_type: str,
    spelling: Spelling = escape,
) -> str | None:
    """Return the message of the first error, as upstream prints it; None if there is none.

    ``variables`` are the declared names with their schemas (None: any type). ``result_type`` is the
    schema type that a plain selection must have (``boolean``, ``string``; "": any).
    """
    tokens = tokenize(expression)
    reader = _ReferenceChecker(tokens, dict(variables), functions, spelling)
    for index in range(len(tokens)):
        fault = reader.check_token(index)
        if fault is not None:
            column, message = fault
            line = expression.count("\n", 0, column) + 1
            column -= expression.rfind("\n", 0, column) + 1
            source_line = expression.split("\n")[line - 1]
            pointer = f" | {source_line}\n | {'.' * column}^"
            return f"compilation failed: ERROR: <input>:{line}:{column + 1}: {message}\n{pointer}"
    return reader.result_type_error(result_type)


LocatedError = tuple[int, str]


class _ReferenceChecker:
    """Checks the tokens of an expression from left to right; macros add variables to its scope."""

    def __init__(
        self, tokens: list[Token], scope: Scope, functions: Collection[str], spelling: Spelling
    ) -> None:
        self._spelling = spelling
        self._tokens = tokens
        self._scope = scope
        self._functions = frozenset(name.rpartition(".")[2] for name in functions) | _NATIVE
        self._spaces = frozenset(name.partition(".")[0] for name in functions if "." in name)
        self._result: SchemaNode | None = None
        self._end = -1
        self._declared: set[int] = set()

    def check_token(self, index: int) -> LocatedError | None:
        """Return the error of one token; None if there is none."""
        token, after = self._tokens[index], token_at(self._tokens, index + 1).text
        if token.kind != "name" or token.text in _LITERALS:
            return None
        if after == "(":
            return self._call(index)
        if token_at(self._tokens, index - 1).text in (".", ".?"):
            return None
        if token.text in self._scope:
            return self._follow(index)
        if token.text in _TYPES or (token.text in self._spaces | _SPACES and after == "."):
            return None
        if after == "{":  # a message literal; no message types are declared
            return token.start, f"undeclared reference to '{token.text}' (in container '')"
        return token.start, f"undeclared reference to '{token.text}' (in container '')"

    def _call(self, index: int) -> LocatedError | None:
        token = self._tokens[index]
        member = token_at(self._tokens, index - 1).text == "."
        is_binding = token.text == "bind" and token_at(self._tokens, index - 2).text == "cel"
        if member and (token.text in MACROS or is_binding):
            self._declare_macro(index, None)
            return None
        if token.text in self._functions:
            return None
        message = f"undeclared reference to '{token.text}' (in container '')"
        return self._tokens[index + 1].start, message

    def _follow(self, index: int) -> LocatedError | None:
        """Check the selections from a variable as far as their schema is known."""
        node = self._scope[self._tokens[index].text]
        index += 1
        while node is not None:
            mark, name = token_at(self._tokens, index).text, token_at(self._tokens, index + 1)
            if mark == "[":
                index = closing_index(self._tokens, index) + 1
                node = node.items or node.additional
                continue
            if mark != "." or name.kind != "name":
                break
            if token_at(self._tokens, index + 2).text == "(":
                if name.text in MACROS:
                    self._declare_macro(index + 1, node.items)
                return None
            if node.type not in ("", "object") or _unknown(node, name.text, self._spelling):
                return self._tokens[index].start, f"undefined field '{name.text}'"
            node = _field(node, name.text, self._spelling)
            index += 2
        self._result, self._end = node, index
        return None

    def _declare_macro(self, index: int, node: SchemaNode | None) -> None:
        """Declare the variables of a macro at an index, that of its elements with a schema."""
        first = index + 2
        if token_at(self._tokens, first).kind != "name" or first in self._declared:
            return
        self._declared.add(first)
        names, macro = [self._tokens[first].text], self._tokens[index].text
        if macro in TWO_VARIABLE_MACROS and has_two_variables(self._tokens, index):
            names.append(self._tokens[first + 2].text)
        self._scope |= dict.fromkeys(names) | {names[-1]: node}

    def result_type_error(self, result_type: str) -> str | None:
        """Return the error if the whole expression is one selection of another type."""
        node = self._result
        whole = self._end == len(self._tokens) and not _has_marks(self._tokens)
        if not whole or node is None or node.type in ("", result_type):
            return None
        if not result_type:
            return None
        noun = {"boolean": "cel expression must evaluate to a bool"}
        return noun.get(result_type, "messageExpression must evaluate to a string")


def _has_marks(tokens: Sequence[Token]) -> bool:
    return any(token.kind != "name" and token.text != "." for token in tokens)


def _unknown(node: SchemaNode, name: str, spelling: Spelling) -> bool:
    closed = not (node.allows_additional or node.preserves)
    return closed and not any(spelling(field) == name for field in node.properties)


def _field(node: SchemaNode, name: str, spelling: Spelling) -> SchemaNode | None:
    for field, below in node.properties.items():
        if spelling(field) == name:
            return below
    return node.additional


_CEL_TYPES: Final = {"boolean": "bool", "integer": "int", "number": "double", "string": "string"}
_LITERAL_TYPES: Final = {"true": "bool", "false": "bool", "null": "null_type"}


def plain_type(expression: str, variables: Scope) -> str:
    """Return the CEL type of an expression that is one literal or one selection; "": not known.

    Fields are not escaped.
    """
    tokens = tokenize(expression)
    if len(tokens) == 1 and (found := _literal_type(tokens[0])):
        return found
    if not tokens or any(t.kind != "name" for t in tokens[::2]) or len(tokens) % 2 == 0:
        return ""
    if any(t.text != "." for t in tokens[1::2]) or tokens[0].text not in variables:
        return ""
    node = variables[tokens[0].text]
    for token in tokens[2::2]:
        node = None if node is None else _field(node, token.text, str)
    return "dyn" if node is None else _CEL_TYPES.get(node.type, "")


def _literal_type(token: Token) -> str:
    if token.kind == "text":
        prefix = token.text[: min(token.text.find(quote) % len(token.text) for quote in "'\"")]
        return "bytes" if "b" in prefix.lower() else "string"
    if token.kind == "number":
        if token.text[-1] in "uU":
            return "uint"
        is_double = "x" not in token.text and not token.text.isdigit()
        return "double" if is_double else "int"
    return _LITERAL_TYPES.get(token.text, "")


_SPACES: Final = {"cel", "optional"}
_STEP: Final = re.compile(r"\.([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE: Final = re.compile(r"\\(.)")


class FieldPathError(ValueError):
    """A path is malformed, or the schema has no such field."""


def find_field(
    path: str, node: SchemaNode, *, brackets: bool = True
) -> tuple[str, SchemaNode | None]:
    """Return a path as messages print it, and the node at its end. Raise FieldPathError."""
    found: SchemaNode | None = node
    spelled, position = "", 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise FieldPathError(f"expected [ or . but got: {path[position:]}")
        if match[1] is None and not brackets:
            raise FieldPathError("array notation is not allowed")
        name = match[1] if match[1] is not None else _ESCAPE.sub(r"\1", match[2])
        named = found is not None and bool(found.properties)
        if found is None or not (named or found.allows_additional):
            raise FieldPathError("does not refer to a valid field")
        if named and name not in found.properties:
            raise FieldPathError("does not refer to a valid field")
        found = found.properties[name] if named else found.additional
        spelled += f".{name}" if named else f"[{name}]"
        position = match.end()
    return spelled.removeprefix("."), found
