"""The parser of CEL expressions, for the type checker.

The library reports syntax errors before; this parser reports what cel-go's parser adds to them:
reserved words, literals out of range and malformed macros.

Sources: github.com/google/cel-go/parser (gen/CEL.g4, parser.go, unescape.go).
"""

from __future__ import annotations

import re
from typing import Final

from extender.cel.identifiers import is_reserved
from extender.cel.macro_expansion import MacroError, expand_macro
from extender.cel.parser import Token, token_at, tokenize
from extender.cel.source_errors import SourceError
from extender.cel.syntax_tree import (
    Call,
    FieldInitializer,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Name,
    Node,
    Selection,
)

_RELATIONS: Final = ("<", "<=", ">=", ">", "==", "!=", "in")
_SUMS: Final = ("+", "-")
_PRODUCTS: Final = ("*", "/", "%")
_LITERALS: Final = {"true": True, "false": False}
_INT_BITS: Final = 63
_UINT_BITS: Final = 64
_ESCAPE: Final = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def parse(source: str) -> tuple[Node, list[SourceError]]:
    """Return the tree of an expression that has no syntax errors, and the errors of its parts."""
    parser = _Parser(tokenize(source))
    return parser.expression(), parser.errors


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._index = tokens, 0
        self.errors: list[SourceError] = []

    def expression(self) -> Node:
        condition = self._disjunction()
        if (at := self._skip("?")) < 0:
            return condition
        first = self._disjunction()
        self._skip(":")
        return Call(at, "_?_:_", None, (condition, first, self.expression()))

    @property
    def _next(self) -> Token:
        return token_at(self._tokens, self._index)

    def _skip(self, *texts: str) -> int:
        """Skip the next token if it is one of them, and return its offset; -1 if it is not."""
        token = self._next
        if token.text not in texts or token.kind == "text" or token.start < 0:
            return -1
        self._index += 1
        return token.start

    def _disjunction(self) -> Node:
        left = self._conjunction()
        while (at := self._skip("||")) >= 0:
            left = Call(at, "_||_", None, (left, self._conjunction()))
        return left

    def _conjunction(self) -> Node:
        left = self._binary(0)
        while (at := self._skip("&&")) >= 0:
            left = Call(at, "_&&_", None, (left, self._binary(0)))
        return left

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._next).text in _LEVELS[level] and operator.kind != "text":
            self._index += 1
            function = "@in" if operator.text == "in" else f"_{operator.text}_"
            left = Call(operator.start, function, None, (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Node:
        token = self._next
        is_number = token_at(self._tokens, self._index + 1).kind == "number"
        if token.kind != "mark" or token.text not in "!-" or (token.text == "-" and is_number):
            return self._member()
        count = 0
        while self._skip(token.text) >= 0:
            count += 1
        operand = self._member()
        function = "!_" if token.text == "!" else "-_"
        return operand if count % 2 == 0 else Call(token.start, function, None, (operand,))

    def _member(self) -> Node:
        node = self._primary()
        while (mark := self._next).text in (".", ".?", "[", "[?") and mark.kind == "mark":
            self._index += 1
            if mark.text in ("[", "[?"):
                function = "_[_]" if mark.text == "[" else "_[?_]"
                node = Call(mark.start, function, None, (node, self.expression()))
                self._skip("]")
                continue
            name = self._next
            self._index += 1
            field = name.text.strip("`")
            if mark.text == ".?":
                selected = Literal(name.start, "string", field)
                node = Call(mark.start, "_?._", None, (node, selected))
            elif (at := self._skip("(")) >= 0:
                node = self._call(at, field, node)
            else:
                node = Selection(mark.start, node, field)
        return node

    def _call(self, at: int, function: str, target: Node | None) -> Node:
        call = Call(at, function, target, self._list(")")[0])
        try:
            return expand_macro(call)
        except MacroError as error:
            self.errors.append(SourceError(error.at, str(error)))
            return call

    def _list(self, closing: str) -> tuple[tuple[Node, ...], frozenset[int]]:
        """Return the elements up to a bracket, and the indices of the optional ones."""
        elements, optional = list[Node](), set[int]()
        while self._skip(closing) < 0 and self._next.start >= 0:
            if self._skip("?") >= 0:
                optional.add(len(elements))
            elements.append(self.expression())
            self._skip(",")
        return tuple(elements), frozenset(optional)

    def _map(self, at: int) -> Node:
        entries, optional = list[tuple[Node, Node]](), set[int]()
        while self._skip("}") < 0 and self._next.start >= 0:
            if self._skip("?") >= 0:
                optional.add(len(entries))
            key = self.expression()
            self._skip(":")
            entries.append((key, self.expression()))
            self._skip(",")
        return MapLiteral(at, tuple(entries), frozenset(optional))

    def _primary(self) -> Node:
        token = self._next
        self._index += 1
        if token.kind == "text":
            return self._text(token)
        if token.kind == "number":
            return self._number(token.text, token.start)
        if token.text == "-":
            self._index += 1
            return self._number(f"-{token_at(self._tokens, self._index - 1).text}", token.start)
        if token.text == "(":
            inner = self.expression()
            self._skip(")")
            return inner
        if token.text in ("[", "[?"):
            self._index -= token.text == "[?"
            return self._list_literal(token)
        if token.text == "{":
            return self._map(token.start)
        return self._name(token)

    def _list_literal(self, token: Token) -> Node:
        if token.text == "[?":  # one token, for an optional index; here a list
            self._tokens[self._index] = Token("mark", "?", token.start + 1)
        elements, optional = self._list("]")
        return ListLiteral(token.start, elements, optional)

    def _name(self, token: Token) -> Node:
        leading = "." if token.text == "." else ""
        if leading:
            token = self._next
            self._index += 1
        if token.text in _LITERALS:
            return Literal(token.start, "bool", _LITERALS[token.text])
        if token.text == "null":
            return Literal(token.start, "null", None)
        if is_reserved(token.text):
            self.errors.append(SourceError(token.start, f"reserved identifier: {token.text}"))
        if (at := self._skip("(")) >= 0:
            return self._call(at, f"{leading}{token.text}", None)
        if (message := self._message(leading, token)) is not None:
            return message
        return Name(token.start, f"{leading}{token.text}")

    def _message(self, leading: str, token: Token) -> Node | None:
        """Return the message literal whose name begins with a token; None if there is none."""
        index, names = self._index, [token.text]
        while token_at(self._tokens, index).text == ".":
            names.append(token_at(self._tokens, index + 1).text)
            index += 2
        brace = token_at(self._tokens, index)
        if brace.text != "{" or brace.kind != "mark":
            return None
        self._index = index + 1
        fields, optional = list[FieldInitializer](), set[int]()
        while self._skip("}") < 0 and self._next.start >= 0:
            if self._skip("?") >= 0:
                optional.add(len(fields))
            field = self._next.text.strip("`")
            self._index += 1
            at = self._skip(":")
            fields.append(FieldInitializer(at, field, self.expression()))
            self._skip(",")
        name = f"{leading}{'.'.join(names)}"
        return MessageLiteral(brace.start, name, tuple(fields), frozenset(optional))

    def _number(self, text: str, at: int) -> Node:
        sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
        if digits[-1] in "uU":
            return self._integer(f"{sign}{digits[:-1]}", at, "uint")
        if "x" in digits or digits.isdigit():
            return self._integer(f"{sign}{digits}", at, "int")
        return Literal(at, "double", float(text))

    def _integer(self, text: str, at: int, type_name: str) -> Node:
        try:
            value = int(text, 16 if "x" in text else 10)
        except ValueError:  # int() converts at most 4,300 decimal digits
            value = 2**_UINT_BITS
        least = -(2**_INT_BITS) if type_name == "int" else 0
        if not least <= value < 2 ** (_INT_BITS if type_name == "int" else _UINT_BITS):
            self.errors.append(SourceError(at, f"invalid {type_name} literal"))
        return Literal(at, type_name, value)

    def _text(self, token: Token) -> Node:
        quote = min(token.text.find(mark) % len(token.text) for mark in "'\"")
        prefix, body = token.text[:quote].lower(), token.text[quote:]
        width = 3 if body[:3] in ("'''", '"""') and len(body) > 3 else 1
        text = body[width:-width]
        if "r" not in prefix:
            text = _ESCAPE.sub(_unescaped, text)
        if "b" in prefix:
            return Literal(token.start, "bytes", text.encode("utf-8", "surrogatepass"))
        return Literal(token.start, "string", text)


_LEVELS: Final = (_RELATIONS, _SUMS, _PRODUCTS)


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        return chr(min(int(digits, 16), 0x10FFFF))
    return chr(int(match[4], 8)) if match[4] else _CONTROLS.get(match[5], match[5])
