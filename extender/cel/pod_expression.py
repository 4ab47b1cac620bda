"""Expressions of policies over one pod: the variable ``pod``, with typed fields.

    pod.labels["team"] == "batch" && pod.restarts < 3
    pod.requests["cpu"] + 10 * pod.requests["nvidia.com/gpu"]

CPU is in milliCPU, memory in bytes, and any other resource in its own unit. The requests of CPU,
memory and ephemeral storage are always present. ``owner`` is the controller of the pod, and has
empty texts without one. There is no time: an expression is evaluated when its pod changes.

Of a pod's annotations only those that a policy names are kept. So they can be read only by literal
keys, which ``annotations`` of a compiled expression has: ``pod.annotations["a/b"]``,
``"a/b" in pod.annotations``, ``pod.annotations[?"a/b"]``. For the same reason ``pod`` can only be
followed by a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from extender.cel.cel_types import BOOL, INT, STRING, CelType, map_of
from extender.cel.compilation import ExpressionError, compile_expression, value_size
from extender.cel.parser import MISSING, is_installed, tokenize
from extender.cel.source_errors import SourceError, format_errors
from extender.cel.syntax_tree import Call, Literal, Node, Selection, children, walk
from extender.cel.type_checker import CheckedExpression, check_expression
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.pod_cost import EvaluationError

Result = TypeVar("Result", bool, int)


class PodExpressionError(ValueError):
    """An expression does not compile; the message is one line, with the place of the error."""


class PodExpression(Generic[Result]):
    """A compiled expression; ``annotations`` are the keys of the annotations that it reads."""

    def __init__(self, source: str, checked: CheckedExpression) -> None:
        """Compile a checked expression. Raise PodExpressionError."""
        self.source = source
        fields, self.annotations = _find_reads(source, checked)
        self._readers = [(name, read) for name, (_, read) in _FIELDS.items() if name in fields]
        self._program = compile_expression(source)
        self._own_size = len(tokenize(source))

    def evaluate(self, pod: Pod) -> Result:
        """Return the value for a pod. Raise EvaluationError if it has none.

        That is so if a key is missing, an integer exceeds 64 bits, a divisor is zero, or macros are
        nested so deep that an evaluation would be slow.
        """
        value = {name: read(pod) for name, read in self._readers}
        try:
            if self._program.has_nested_macros:
                # Unlike those of the API server, lists of the source count, too.
                self._program.cost_of_size(self._own_size + value_size(value))
            found: Result = self._program.evaluate({"pod": value})
        except ExpressionError as error:
            raise EvaluationError(" ".join(str(error).split())) from None
        # Functions in Python, such as that of the sum of a list, have no limit.
        if not -(2**63) <= found < 2**63:
            raise EvaluationError("integer overflow")
        return found


def compile_pod_expression(source: str, result: type[Result]) -> PodExpression[Result]:
    """Return a compiled expression with a result of type bool or int. Raise PodExpressionError."""
    if not is_installed():
        raise PodExpressionError(MISSING)
    checked = check_expression(source, {_POD: _POD_TYPE})
    if isinstance(checked, str):
        raise PodExpressionError(_one_line(checked))
    if checked.result != _RESULTS[result]:
        detail = f"expected a result of type {_RESULTS[result]}, found {checked.result}"
        raise PodExpressionError(f"line 1, column 1: {detail}")
    return PodExpression(source, checked)


def _one_line(report: str) -> str:
    """Return the first error of a report."""
    found = _PLACE.search(report)
    if found is None:
        return " ".join(report.split())
    line, column, message = found.groups()
    return message if line == "-1" else f"line {line}, column {column}: {message}"


_PLACE: Final = re.compile(r"ERROR: <input>:(-?\d+):(\d+): (.*)")
_RESULTS: Final[Mapping[type, CelType]] = {bool: BOOL, int: INT}
_POD: Final = "pod"
_ANNOTATIONS: Final = "annotations"
_NO_OWNER: Final = PodOwner("", "")


def _requests(pod: Pod) -> Mapping[str, int]:
    requests = pod.requests
    return {
        **requests.scalars,
        "cpu": requests.milli_cpu,
        "memory": requests.memory,
        "ephemeral-storage": requests.ephemeral_storage,
    }


_OWNER_TYPE: Final = CelType("message", "Owner", (), {"kind": STRING, "name": STRING})
_FIELDS: Final[Mapping[str, tuple[CelType, Callable[[Pod], Any]]]] = {
    "name": (STRING, lambda pod: pod.name),
    "namespace": (STRING, lambda pod: pod.namespace),
    "uid": (STRING, lambda pod: pod.uid),
    "labels": (map_of(STRING, STRING), lambda pod: dict(pod.labels)),
    _ANNOTATIONS: (map_of(STRING, STRING), lambda pod: dict(pod.annotations)),
    "priority": (INT, lambda pod: pod.priority),
    "priorityClass": (STRING, lambda pod: pod.priority_class),
    "owner": (_OWNER_TYPE, lambda pod: (pod.owner or _NO_OWNER)._asdict()),
    "node": (STRING, lambda pod: pod.node_name or ""),
    "ready": (BOOL, lambda pod: pod.ready),
    "restarts": (INT, lambda pod: pod.restarts),
    "requests": (map_of(STRING, INT), _requests),
    "group": (STRING, lambda pod: pod.group),
}
"""The fields of ``pod``: their types, and how they are read."""
_POD_TYPE: Final = CelType("message", "Pod", (), {n: found for n, (found, _) in _FIELDS.items()})


def _find_reads(source: str, checked: CheckedExpression) -> tuple[set[str], frozenset[str]]:
    """Return the fields of ``pod`` and the keys of annotations that an expression reads.

    Raise PodExpressionError for a use of ``pod`` without a field, and for a key that is not a
    literal.
    """
    fields, keys, types = set[str](), set[str](), checked.types

    def is_pod(node: Node) -> bool:
        return types.get(node) == _POD_TYPE

    for node in walk(checked.root):
        if isinstance(node, Selection) and is_pod(node.operand):
            fields.add(node.field)
            continue
        for child in children(node):
            if is_pod(child):
                raise _error(source, child, "pod has to be followed by the name of a field")
            if not (isinstance(child, Selection) and child.field == _ANNOTATIONS):
                continue
            if is_pod(child.operand):
                if (key := _literal_key(node)) is None:
                    raise _error(source, child, "annotations are read by literal keys only")
                keys.add(key)
    return fields, frozenset(keys)


def _error(source: str, node: Node, message: str) -> PodExpressionError:
    return PodExpressionError(_one_line(format_errors(source, [SourceError(node.at, message)])))


def _literal_key(node: Node) -> str | None:
    """Return the literal key by which a node reads a map, None for any other node."""
    match node:
        case Selection(field=key):
            return key
        case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(_, Literal(value=str(key)))):
            return key
        case Call(function="@in", arguments=(Literal(value=str(key)), _)):
            return key
    return None
