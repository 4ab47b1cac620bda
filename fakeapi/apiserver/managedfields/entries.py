"""Entries of ``metadata.managedFields``, and the owners that they describe.

An owner is a manager with an operation (Apply or Update), a subresource, and, for updates, the
version of the write. Entries are ordered by operation, time and name.

Source: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.apiserver.managedfields.field_set import FieldSet, ordered, parse

APPLY: Final = "Apply"
UPDATE: Final = "Update"


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """An owner of fields; ``version`` is "" for an applier, which is the same in all versions."""

    manager: str
    operation: str
    version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        name = f'"{self.manager}"'
        if self.subresource:
            name += f' with subresource "{self.subresource}"'
        return f"{name} using {self.version}" if self.operation == UPDATE else name


@dataclass(frozen=True, slots=True)
class OwnedFields:
    """The fields of an owner, their version, and the time of the last change (RFC 3339 or "")."""

    fields: FieldSet
    version: str
    time: str = ""


Owners = Mapping[Owner, OwnedFields]


def read_entries(entries: Any) -> dict[Owner, OwnedFields]:
    """Return the owners of entries, with elements as they are. Raise ValueError."""
    owners = {}
    for entry in entries:
        owner = _owner(entry)
        time = entry.get("time") or ""
        owners[owner] = OwnedFields(entry.get("fieldsV1") or {}, entry["apiVersion"], time)
    return owners


def read_client_entries(entries: Any) -> dict[Owner, OwnedFields]:
    """Return the owners of entries from a client, elements made canonical. Raise ValueError."""
    sent = read_entries(entries)
    return {
        owner: OwnedFields(parse(owned.fields), owned.version, owned.time)
        for owner, owned in sent.items()
    }


def write_entries(owners: Owners, previous: Owners) -> list[dict[str, Any]]:
    """Return the entries to store; field sets that are also in ``previous`` are ordered already."""
    ranked = sorted(owners.items(), key=lambda item: _rank(*item))
    return [_entry(owner, owned, previous.get(owner)) for owner, owned in ranked]


def _rank(owner: Owner, owned: OwnedFields) -> tuple[str, ...]:
    return (owner.operation, owned.time, owner.manager, owned.version, owner.subresource)


def _entry(owner: Owner, owned: OwnedFields, previous: OwnedFields | None) -> dict[str, Any]:
    same = previous is not None and previous.fields is owned.fields
    entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owned.version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields if same else ordered(owned.fields),
        "subresource": owner.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def _owner(entry: Mapping[str, Any]) -> Owner:
    operation = entry.get("operation")
    version = entry.get("apiVersion")
    texts = (entry.get("manager") or "", entry.get("subresource") or "", entry.get("time") or "")
    if operation not in (APPLY, UPDATE):
        raise ValueError("operation must be `Apply` or `Update`")
    if not isinstance(version, str) or not version:
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1" or not all(isinstance(text, str) for text in texts):
        raise ValueError("fieldsType must be FieldsV1")
    return Owner(texts[0], operation, version if operation == UPDATE else "", texts[1])
