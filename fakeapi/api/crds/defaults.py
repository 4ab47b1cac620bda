"""Validation of a schema's defaults: each default must be valid in its schema.

Source: pkg/apiserver/schema/defaulting/validation.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from fakeapi.api.causes import invalid_value
from fakeapi.api.cel.checking import collect_causes, value_walk
from fakeapi.api.cel.engine import is_installed
from fakeapi.api.cel.expressions import ExpressionError
from fakeapi.api.decoding import StructDecodeError
from fakeapi.api.errors import Cause
from fakeapi.api.samejson import json_equal
from fakeapi.api.structural.checking import compile_validator
from fakeapi.api.structural.embedded import decode_embedded, embedded_errors, embedded_object_finder
from fakeapi.api.structural.faults import SchemaErrors, causes_of
from fakeapi.api.structural.nodes import ABSENT, META_FIELDS, SchemaNode
from fakeapi.api.structural.pruning import prune


def default_errors(node: SchemaNode, path: str) -> Iterator[Cause]:
    """Return the errors of all defaults of a structural schema."""
    if node.default is not ABSENT:
        yield from _own_errors(node, f"{path}.default")
    if node.items is not None:
        yield from default_errors(node.items, f"{path}.items")
    for name, below in node.properties.items():
        yield from default_errors(below, f"{path}.properties[{name}]")


def _own_errors(node: SchemaNode, path: str) -> Iterator[Cause]:
    default = deepcopy(node.default)
    kept = {}
    if node.embedded and isinstance(default, dict):
        kept = {name: default.pop(name) for name in META_FIELDS if name in default}
    prune(node, default)
    if kept:
        default.update(kept)
    if not json_equal(default, node.default):
        yield invalid_value(path, node.default, "must not have unknown fields")
    find = embedded_object_finder(node)
    if find is not None and isinstance(default, dict):
        try:
            decode_embedded(find, default)
        except StructDecodeError as error:
            yield invalid_value(path, node.default, f"must result in valid metadata: {error}")
            return
        yield from (_moved(cause, path) for cause in embedded_errors(find, default))
    faults: SchemaErrors = []
    compile_validator(node.schema)(node.default, ABSENT, None, faults)
    causes = causes_of(faults, path)
    yield from causes
    if not causes and is_installed():
        try:
            yield from collect_causes(value_walk(node), node.default, node.default, path)
        except ExpressionError:
            return  # reported for the rule itself


def _moved(cause: Cause, path: str) -> Cause:
    return Cause(cause.reason, cause.message, f"{path}.{cause.field}".replace("..", "."))
