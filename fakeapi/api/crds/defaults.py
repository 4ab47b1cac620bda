"""Validation of a schema's defaults: each default must be valid in its schema.

Source: pkg/apiserver/schema/defaulting/validation.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from fakeapi.api.causes import invalid_value
from fakeapi.api.cel.checking import collected, value_walk
from fakeapi.api.cel.engine import is_installed
from fakeapi.api.cel.expressions import ExpressionError
from fakeapi.api.decoding import MismatchError
from fakeapi.api.errors import Cause
from fakeapi.api.samejson import same_json
from fakeapi.api.structural.checking import check_of
from fakeapi.api.structural.embedded import check_embedded, embedded_places, read_embedded
from fakeapi.api.structural.faults import Faults, causes_of
from fakeapi.api.structural.nodes import ABSENT, META_FIELDS, Node
from fakeapi.api.structural.pruning import prune


def default_faults(node: Node, path: str) -> Iterator[Cause]:
    """Return the errors of all defaults of a structural schema."""
    if node.default is not ABSENT:
        yield from _own_faults(node, f"{path}.default")
    if node.items is not None:
        yield from default_faults(node.items, f"{path}.items")
    for name, below in node.properties.items():
        yield from default_faults(below, f"{path}.properties[{name}]")


def _own_faults(node: Node, path: str) -> Iterator[Cause]:
    default = deepcopy(node.default)
    kept = {}
    if node.embedded and isinstance(default, dict):
        kept = {name: default.pop(name) for name in META_FIELDS if name in default}
    prune(node, default)
    if kept:
        default.update(kept)
    if not same_json(default, node.default):
        yield invalid_value(path, node.default, "must not have unknown fields")
    find = embedded_places(node)
    if find is not None and isinstance(default, dict):
        try:
            read_embedded(find, default)
        except MismatchError as error:
            yield invalid_value(path, node.default, f"must result in valid metadata: {error}")
            return
        yield from (_moved(cause, path) for cause in check_embedded(find, default))
    faults: Faults = []
    check_of(node.schema)(node.default, ABSENT, None, faults)
    causes = causes_of(faults, path)
    yield from causes
    if not causes and is_installed():
        try:
            yield from collected(value_walk(node), node.default, node.default, path)
        except ExpressionError:
            return  # reported for the rule itself


def _moved(cause: Cause, path: str) -> Cause:
    return Cause(cause.reason, cause.message, f"{path}.{cause.field}".replace("..", "."))
