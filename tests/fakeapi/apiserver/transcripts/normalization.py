"""Replace values that differ between runs: times, UIDs, versions, generated names, tokens.

The text of a patched object is left out of errors: the order of its keys is that of Go's structs.
"""

from __future__ import annotations

import re
from typing import Any

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GENERATED = re.compile(r"\b(x-|y{58})[a-z0-9]{5}\b")
_VERSION = re.compile(r"(ResourceVersion in (?:record \(|object meta: ))\d+")
_PATCHED = re.compile(r'(patch: Invalid value: "|^Invalid value: ")\{.*\}(": )', re.DOTALL)
_PROTECTION = "kubernetes.io/pvc-protection"
_SOURCE = re.compile(r' in scheme "[^"]+"')


def normal(value: Any) -> Any:
    """Return ``value`` with that replaced, and without nulls and managedFields.

    Nor does it have the finalizer of claims, which fakeapi does not add.
    """
    if isinstance(value, dict):
        kept = {k: v for k, v in sorted(value.items()) if v is not None and k != "managedFields"}
        if kept.get("finalizers") == [_PROTECTION]:
            del kept["finalizers"]
        return {key: _member(key, member) for key, member in kept.items()}
    if isinstance(value, list):
        return [normal(element) for element in value]
    return _text(value) if isinstance(value, str) else value


def _member(key: str, value: Any) -> Any:
    if key in ("resourceVersion", "token") and isinstance(value, str):
        return key.upper()
    return normal(value)


def _text(text: str) -> str:
    if text.isdecimal() and len(text) > 12:
        return "NUMBER"
    for pattern, name in ((_TIME, "TIME"), (_UID, "UID"), (_SOURCE, "")):
        text = pattern.sub(name, text)
    text = _PATCHED.sub(r"\1PATCHED\2", text)
    return _GENERATED.sub(r"\1NAME", _VERSION.sub(r"\1VERSION", text))
