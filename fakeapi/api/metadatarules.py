"""Validation rules of object metadata: owners, labels, annotations, finalizers.

Source: k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fakeapi.api.causes import invalid_value, required
from fakeapi.api.errors import Cause
from policies.naming import invalid_finalizer, invalid_label_key, invalid_label_value


def check_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of owners, finalizers, labels and annotations."""
    yield from check_common_metadata(metadata, path)
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        wrong = invalid_finalizer(finalizer)
        if wrong:
            yield invalid_value(f"{path}.finalizers[{index}]", finalizer, wrong)


def check_custom_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of a custom resource's metadata; its finalizers need no domain."""
    yield from check_common_metadata(metadata, path)
    for finalizer in metadata.get("finalizers") or ():
        wrong = invalid_label_key(finalizer)
        if wrong:
            yield invalid_value(f"{path}.finalizers", finalizer, wrong)


def check_common_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of owners, labels and annotations."""
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield required(f"{path}.ownerReferences[{index}].{name}", "must not be empty")
    yield from check_labels(metadata.get("labels") or {}, f"{path}.labels")
    for key in metadata.get("annotations") or {}:
        wrong = invalid_label_key(key.lower())
        if wrong:
            yield invalid_value(f"{path}.annotations", key, wrong)


def check_labels(labels: Mapping[str, str], path: str) -> Iterator[Cause]:
    """Yield the errors of label keys and values."""
    for key, value in labels.items():
        for text, wrong in ((key, invalid_label_key(key)), (value, invalid_label_value(value))):
            if wrong:
                yield invalid_value(path, text, wrong)
