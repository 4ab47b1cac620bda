"""The type checker of CEL expressions, with the errors of cel-go.

Overloads are resolved against the types of arguments; a type that is not known yet (an element of
an empty list) is bound by its first use. A message type has the fields of a schema.

Sources: github.com/google/cel-go/checker (checker.go, errors.go), cel/validator.go.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.cel.cel_types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    SIMPLE,
    Bindings,
    CelType,
    assign,
    free,
    list_of,
    map_of,
    most_general,
    optional_of,
    runtime_name,
    substitute,
    type_of,
    unwrap_optional,
)
from extender.cel.compilation import ExpressionError, compile_expression
from extender.cel.expression_parser import parse
from extender.cel.function_declarations import Overload, function_declarations
from extender.cel.literal_validation import literal_errors
from extender.cel.patch_types import ESCAPE_KEY, NO_MESSAGE, OBJECT
from extender.cel.source_errors import SourceError, format_errors
from extender.cel.syntax_tree import (
    Call,
    Comprehension,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Name,
    Node,
    Selection,
)

_SYNTAX_ERROR: Final = "Syntax error"
_TYPE_NAMES: Final = {
    **{runtime_name(each): type_of(each) for each in SIMPLE.values()},
    "list": type_of(list_of(DYN)),
    "map": type_of(map_of(DYN, DYN)),
    "type": type_of(CelType("type", "type")),
    "optional_type": type_of(optional_of(DYN)),
    "net.IP": type_of(CelType("opaque", "net.IP")),
    "net.CIDR": type_of(CelType("opaque", "net.CIDR")),
}


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """The tree of an expression, the type of each node and the overloads of each call."""

    root: Node
    types: Mapping[Node, CelType]
    overloads: Mapping[Node, Sequence[Overload]]

    @property
    def result(self) -> CelType:
        """The type of the expression."""
        return self.types[self.root]

    def uses(self, variable: str) -> bool:
        """Return whether the expression refers to a variable."""
        return any(isinstance(node, Name) and node.name == variable for node in self.types)


def check_expression(source: str, variables: Mapping[str, CelType]) -> CheckedExpression | str:
    """Return a checked expression, or the error of one that does not compile."""
    failure = ""
    try:
        compile_expression(source)
    except ExpressionError as error:
        failure = str(error)
        if _SYNTAX_ERROR in failure:
            return failure
    checked = check(source, variables)
    return f"compilation failed: {checked}" if isinstance(checked, str) else failure or checked


def check(source: str, variables: Mapping[str, CelType]) -> CheckedExpression | str:
    """Return a checked expression, or the report of its errors; its syntax must be valid."""
    try:
        return _check(source, variables)
    except RecursionError:
        return "ERROR: <input>:-1:0: expression recursion limit exceeded"


def _check(source: str, variables: Mapping[str, CelType]) -> CheckedExpression | str:
    root, errors = parse(source)
    if errors:
        return format_errors(source, errors)
    checker = _Checker(variables)
    checker.check(root)
    if checker.errors:
        return format_errors(source, checker.errors)
    types = {
        node: substitute(found, checker.bindings, unbound=DYN)
        for node, found in checker.types.items()
    }
    if errors := literal_errors(root, types):
        return format_errors(source, errors)
    return CheckedExpression(root, types, checker.overloads)


class _Checker:
    def __init__(self, variables: Mapping[str, CelType]) -> None:
        self._names: ChainMap[str, CelType] = ChainMap({**_TYPE_NAMES, **variables})
        self._functions = function_declarations()
        self._free = 0
        self.bindings: Bindings = {}
        self.types: dict[Node, CelType] = {}
        self.overloads: dict[Node, Sequence[Overload]] = {}
        self.errors: list[SourceError] = []

    def check(self, node: Node) -> CelType:
        """Return the type of a node, and record its errors."""
        found = self._type(node)
        self.types[node] = found
        return found

    def _type(self, node: Node) -> CelType:
        match node:
            case Literal():
                return SIMPLE[node.type_name]
            case Name():
                return self._name(node)
            case Selection():
                return self._selection(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case MessageLiteral():
                return self._message(node)
            case Comprehension():
                return self._comprehension(node)

    def _error(self, at: int, message: str) -> CelType:
        self.errors.append(SourceError(at, message))
        return ERROR

    def _undeclared(self, at: int, name: str) -> CelType:
        return self._error(at, f"undeclared reference to '{name}' (in container '')")

    def _name(self, node: Name) -> CelType:
        if (found := self._resolve(node.name)) is not None:
            return found
        return self._undeclared(node.at, node.name)

    def _resolve(self, name: str) -> CelType | None:
        if name.startswith("."):
            return self._names.maps[-1].get(name[1:])
        if name.startswith("Object.") and "Object" in self._names:
            return type_of(CelType("message", name, (), OBJECT.fields))
        return self._names.get(name)

    def _selection(self, node: Selection) -> CelType:
        qualified = _qualified_name(node)
        if qualified and (found := self._resolve(qualified)) is not None:
            is_shadowed = qualified.partition(".")[0] in ChainMap(*self._names.maps[:-1])
            if not is_shadowed:
                return found
        found = self._field(node.at, node.operand, node.field)
        return BOOL if node.tests else substitute(found, self.bindings)

    def _field(self, at: int, operand: Node, field: str) -> CelType:
        """Return the type of a field of an operand."""
        given = substitute(self.check(operand), self.bindings)
        target, is_optional = unwrap_optional(given)
        found = DYN
        if target.kind == "map":
            found = target.parameters[1]
        elif target.kind == "message":
            found = self._message_field(at, target, field)
        elif target.kind == "free":
            self._assign(DYN, target)
        elif target.kind not in ("dyn", "error"):
            self._error(at, f"type '{target}' does not support field selection")
        return optional_of(found) if is_optional else found

    def _message_field(self, at: int, message: CelType, field: str) -> CelType:
        if message.fields is None:
            return self._error(at, f"unexpected failed resolution of '{message.name}'")
        try:
            return message.fields[field]
        except KeyError:
            return self._error(at, f"undefined field '{field}'")

    def _call(self, node: Call) -> CelType:
        if node.function == "_?._":
            return self._optional_selection(node)
        for argument in node.arguments:
            self.check(argument)
        target = node.target
        if target is not None and (qualified := _qualified_name(target)):
            name = f"{qualified}.{node.function}"
            if self._is_function(name.removeprefix(".")):
                return self._resolve_overload(node, name.removeprefix("."), None)
        if target is not None:
            self.check(target)
        name = node.function.removeprefix(".")
        if name not in self._functions:
            return self._undeclared(node.at, node.function)
        return self._resolve_overload(node, name, target)

    def _is_function(self, name: str) -> bool:
        return name in self._functions and (name != ESCAPE_KEY or "JSONPatch" in self._names)

    def _optional_selection(self, node: Call) -> CelType:
        operand, field = node.arguments
        name = field.value if isinstance(field, Literal) else ""
        found = self._field(node.at, operand, str(name))
        found = found if unwrap_optional(found)[1] else optional_of(found)
        return substitute(found, self.bindings)

    def _resolve_overload(self, node: Call, function: str, target: Node | None) -> CelType:
        operands = node.arguments if target is None else (target, *node.arguments)
        given = tuple(self.types[each] for each in operands)
        if function in ("_&&_", "_||_"):
            return self._logical(node, given)
        matching, result = list[Overload](), None
        for overload in self._functions[function]:
            if overload.is_method == (target is None):
                continue
            *parameters, returned = self._instantiate(overload)
            if not self._assign_all(tuple(parameters), given):
                continue
            matching.append(overload)
            returned = substitute(returned, self.bindings)
            if result is None:
                result = returned
            elif result.kind != "dyn" and returned != result:
                result = DYN
        if result is None:
            applied = [str(substitute(each, self.bindings, unbound=DYN)) for each in given]
            receiver = f"{applied.pop(0)}." if target is not None else ""
            signature = f"{receiver}({', '.join(applied)})"
            message = f"found no matching overload for '{function}' applied to '{signature}'"
            return self._error(node.at, message)
        self.overloads[node] = matching
        return result

    def _logical(self, node: Call, given: Sequence[CelType]) -> CelType:
        failed = False
        for operand, found in zip(node.arguments, given, strict=True):
            failed |= not self._expect(operand, BOOL, found)
        self.overloads[node] = self._functions[node.function]
        return ERROR if failed else BOOL

    def _instantiate(self, overload: Overload) -> tuple[CelType, ...]:
        """Return the parameters and the result of an overload, with free types of their own."""
        self._free += 1
        types = (*overload.parameters, overload.result)
        return tuple(_rename(each, f"_var{self._free}") for each in types)

    def _expect(self, node: Node, expected: CelType, found: CelType) -> bool:
        if self._assign(expected, found):
            return True
        self._error(node.at, f"expected type '{expected}' but found '{found}'")
        return False

    def _assign(self, target: CelType, given: CelType) -> bool:
        return self._assign_all((target,), (given,))

    def _assign_all(self, targets: tuple[CelType, ...], given: tuple[CelType, ...]) -> bool:
        bindings = assign(targets, given, self.bindings)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def _new_free(self) -> CelType:
        self._free += 1
        return free(f"_var{self._free}")

    def _join(self, node: Node, previous: CelType | None, found: CelType) -> CelType:
        if previous is None:
            return found
        if self._assign(previous, found):
            return most_general(previous, found)
        return self._error(node.at, f"expected type '{previous}' but found '{found}'")

    def _list(self, node: ListLiteral) -> CelType:
        element: CelType | None = None
        for index, each in enumerate(node.elements):
            found = self._check_optional(each) if index in node.optional else self.check(each)
            element = self._join(each, element, found)
        return list_of(self._new_free() if element is None else element)

    def _check_optional(self, node: Node) -> CelType:
        """Return the type of the value of an optional node."""
        value, unwrapped = unwrap_optional(self.check(node))
        if not unwrapped and value.kind != "dyn":
            self._error(node.at, f"expected type '{optional_of(value)}' but found '{value}'")
        return value

    def _message(self, node: MessageLiteral) -> CelType:
        declared = self._resolve(node.name)
        if declared is None or declared.kind != "type":
            return self._undeclared(node.at, node.name)
        found = declared.parameters[0]
        if found.kind != "message":
            self._error(node.at, f"'{found}' is not a message type")
            found = NO_MESSAGE
        self._check_fields(node, found)
        return found

    def _check_fields(self, node: MessageLiteral, message: CelType) -> None:
        for index, each in enumerate(node.fields):
            is_optional = index in node.optional
            found = self._check_optional(each.value) if is_optional else self.check(each.value)
            expected = self._message_field(each.at, message, each.name)
            if not self._assign(expected, found):
                given = substitute(found, self.bindings, unbound=DYN)
                detail = f"is '{expected}' but provided type is '{given}'"
                self._error(each.at, f"expected type of field '{each.name}' {detail}")

    def _map(self, node: MapLiteral) -> CelType:
        key_type = value_type = None
        for index, (key, value) in enumerate(node.entries):
            key_type = self._join(key, key_type, self.check(key))
            found = self._check_optional(value) if index in node.optional else self.check(value)
            value_type = self._join(value, value_type, found)
        if key_type is None or value_type is None:
            return map_of(self._new_free(), self._new_free())
        return map_of(key_type, value_type)

    def _comprehension(self, node: Comprehension) -> CelType:
        operand = substitute(self.check(node.operand), self.bindings)
        accumulated = self.check(node.initial)
        self._names = self._names.new_child({node.accumulator: accumulated})
        first, second = self._iteration_types(node, operand)
        variables = {node.first: first if node.second or operand.kind == "map" else second}
        if node.second:
            variables[node.second] = second
        self._names = self._names.new_child(variables)
        self._expect(node.condition, BOOL, self.check(node.condition))
        self._expect(node.step, accumulated, self.check(node.step))
        self._names = self._names.parents
        result = self.check(node.result)
        self._names = self._names.parents
        return substitute(result, self.bindings)

    def _iteration_types(self, node: Comprehension, operand: CelType) -> tuple[CelType, CelType]:
        """Return the types of keys, or indices, and of values."""
        if operand.kind == "list":
            return INT, operand.parameters[0]
        if operand.kind == "map":
            return operand.parameters[0], operand.parameters[1]
        if operand.kind in ("dyn", "error", "free"):
            self._assign(DYN, operand)
            return DYN, DYN
        detail = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._error(node.operand.at, f"expression of type '{operand}' {detail}")
        return ERROR, ERROR


def _rename(found: CelType, suffix: str) -> CelType:
    if found.kind == "free":
        return free(f"{found.name}{suffix}")
    if not found.parameters:
        return found
    parameters = tuple(_rename(each, suffix) for each in found.parameters)
    return CelType(found.kind, found.name, parameters, found.fields)


def _qualified_name(node: Node) -> str:
    """Return the qualified name that selections from a name may be; "" if they are none."""
    if isinstance(node, Name):
        return node.name
    if not isinstance(node, Selection) or node.tests:
        return ""
    prefix = _qualified_name(node.operand)
    return f"{prefix}.{node.field}" if prefix else ""
