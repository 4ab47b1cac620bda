"""Name validation: label keys and values, DNS labels, ConfigMap keys, finalizers.

A function named ``invalid_…`` returns the first error in upstream's words, or "" if there is none;
one named ``…_errors`` returns all of them.

Source: k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = rf"({_NAME})?"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_KEY: Final = r"[-._a-zA-Z0-9]+"

_MAX_LABEL: Final = 63
_REMEMBERED: Final = 8_192
_MAX_SUBDOMAIN: Final = 253

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_VALUE}')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_DOTS_RULE: Final = "must not contain dots"
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_LABEL_1035}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    f"'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_KEY_FORM: Final = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_EMPTY_RULE: Final = "must be non-empty"
_FINALIZERS: Final = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


@lru_cache(maxsize=_REMEMBERED)
def label_key_errors(key: str) -> tuple[str, ...]:
    """Return all errors of a label or annotation key: a DNS prefix, a slash, a name."""
    prefix, slash, name = key.rpartition("/")
    if prefix.count("/"):
        return (f"a valid label key {_NAME_RULE} {_KEY_FORM}",)
    errors = []
    if slash and (not prefix or not _matches(_SUBDOMAIN, prefix, _MAX_SUBDOMAIN)):
        errors.append(f"prefix part {_SUBDOMAIN_RULE if prefix else _EMPTY_RULE}")
    if not name:
        errors.append(f"name part {_EMPTY_RULE}")
    elif len(name) > _MAX_LABEL:
        errors.append(f"name part must be no more than {_MAX_LABEL} bytes")
    if not _matches(_NAME, name, len(name)):
        errors.append(f"name part {_NAME_RULE}")
    return tuple(errors)


@lru_cache(maxsize=_REMEMBERED)
def label_value_errors(value: str) -> tuple[str, ...]:
    """Return all errors of a label value."""
    errors = []
    if len(value) > _MAX_LABEL:
        errors.append(f"must be no more than {_MAX_LABEL} bytes")
    if not _matches(_VALUE, value, len(value)):
        errors.append(_VALUE_RULE)
    return tuple(errors)


def invalid_label_key(key: str) -> str:
    """Return the first error of a label or annotation key: a name, with an optional DNS prefix."""
    return _first(label_key_errors(key))


def invalid_label_value(value: str) -> str:
    """Return the first error of a label value."""
    return _first(label_value_errors(value))


@lru_cache(maxsize=_REMEMBERED)
def invalid_dns_label(name: str) -> str:
    """Return the error of the name of a container, a volume or a namespace."""
    error = _first_error(name, _MAX_LABEL, _LABEL, _LABEL_RULE)
    return _DOTS_RULE if error == _LABEL_RULE and not invalid_subdomain(name) else error


def invalid_dns1035_label(name: str) -> str:
    """Return the error of a name that begins with a letter: a resource, a kind, a version."""
    return _first_error(name, _MAX_LABEL, _LABEL_1035, _LABEL_1035_RULE)


def invalid_subdomain(name: str) -> str:
    """Return the error of the name of a node, or of most other objects."""
    return _first_error(name, _MAX_SUBDOMAIN, _SUBDOMAIN, _SUBDOMAIN_RULE)


def invalid_path_segment(name: str) -> str:
    """Return the error of a name that is one segment of a path."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return next((f"may not contain '{mark}'" for mark in "/%" if mark in name), "")


def invalid_config_key(key: str) -> str:
    """Return the error of a key in the data of a ConfigMap or Secret."""
    return _first_error(key, _MAX_SUBDOMAIN, _KEY, _KEY_RULE)


def invalid_finalizer(name: str) -> str:
    """Return the error of a finalizer: it is a standard one, or a qualified name."""
    error = invalid_label_key(name)
    if error or "/" in name or name in _FINALIZERS:
        return error
    return "name is neither a standard finalizer name nor is it fully qualified"


def _first_error(text: str, max_length: int, pattern: str, rule: str) -> str:
    if len(text) > max_length:
        return f"must be no more than {max_length} characters"
    return "" if _matches(pattern, text, max_length) else rule


def _matches(pattern: str, text: str, max_length: int) -> bool:
    return len(text) <= max_length and re.fullmatch(pattern, text, re.ASCII) is not None


def _first(errors: tuple[str, ...]) -> str:
    return errors[0] if errors else ""
