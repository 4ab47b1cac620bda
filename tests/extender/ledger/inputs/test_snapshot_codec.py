"""Values keep what they are in a blob, and bytes of strangers are values or one clear error."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.ledger.inputs.snapshot_blobs import FORMAT
from extender.ledger.inputs.snapshot_codec import (
    MAX_BLOB_BYTES,
    BlobError,
    compress,
    decode_value,
    digest_of,
    encode_value,
    read_blob,
)
from policies.kubernetes.devices import Attribute, AttributeType, Capacity, Device
from policies.kubernetes.pod_groups import PodGroups
from policies.kubernetes.policy_objects import PolicyObjects
from policies.kubernetes.snapshot import NodeState, Pod, Resources, Snapshot
from policies.kubernetes.storage import (
    ClaimVolume,
    Disk,
    PodStorage,
    Storage,
    StorageKind,
    UnreadableObject,
)
from tests.builders import pod
from tests.properties.typed_values import values_of

FIELDS_OF_FORMAT = (1, "0ee621ebb41be527")
"""A format, and the digest of the types and fields of a snapshot in it."""


def decoded(data: bytes, kind: type[Any]) -> Any:
    digest = digest_of(data)
    return decode_value(digest, read_blob(digest, {digest: compress(data)}.__getitem__), kind)


@pytest.mark.parametrize("kind", [Pod, NodeState, Storage, PodGroups, PolicyObjects])
@given(data=st.data())
def test_any_value_keeps_its_fields_and_its_bytes(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    written = encode_value(value)
    read = decoded(written, kind)
    assert read == value
    assert encode_value(read) == written


def test_the_order_of_sets_and_mappings_does_not_change_the_bytes() -> None:
    unreadable = [UnreadableObject(kind, key) for kind in StorageKind for key in ("a", "b")]
    values = [
        Storage(
            unknown=frozenset(kinds),
            unreadable=frozenset(objects),
            attachments=dict.fromkeys(names, ()),
        )
        for kinds, objects, names in (
            ([*StorageKind], unreadable, ["node-1", "node-2"]),
            ([*StorageKind][::-1], unreadable[::-1], ["node-2", "node-1"]),
        )
    ]
    assert values[0] == values[1]
    assert encode_value(values[0]) == encode_value(values[1])


@pytest.mark.parametrize(
    "value",
    [
        PodStorage((ClaimVolume("data"), Disk("kubernetes.io/rbd", "pool/image"))),
        Device(
            "gpu-0",
            {
                "flag": Attribute(AttributeType.BOOL, value=True),
                "number": Attribute(AttributeType.INT, 1),
                "text": Attribute(AttributeType.STRING, "1"),
            },
            {"memory": Capacity(80 * 2**30 * 10**9)},
        ),
        Resources(scalars={"a": -(2**70)}),
    ],
    ids=["volumes of two kinds", "attributes of three types", "integers above 64 bits"],
)
def test_types_are_kept(value: object) -> None:
    read = decoded(encode_value(value), type(value))
    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff", "not JSON: 'utf-8' codec can't decode byte 0xff in position 0"),
        (b'{"namespace":"a","name":"b"}', "Object missing required field `uid`"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"priority":"1"', "not JSON: Expecting ',' delimiter"),
        (b'{"namespace":1}', "Expected `str`, got `int` - at `$.namespace`"),
        (b'{"priority":true}', "Expected `int`, got `bool` - at `$.priority`"),
        (b'{"priority":NaN}', "Expected `int`, got `float` - at `$.priority`"),
        (b'{"priority":1e999}', "Expected `int`, got `float` - at `$.priority`"),
        (b'{"priority":' + b"9" * 9999 + b"}", "not JSON: Exceeds the limit (4300"),
        (b"[" * 99_999, "not JSON: maximum recursion depth exceeded"),
        (rb'{"namespace":"\ud800"}', "half a character; expected pairs of surrogates"),
        (rb'{"namespace":"\\\udfff"}', "half a character; expected pairs of surrogates"),
        (b'{"requests":{"scalars":{"a":"b"}}}', "at `$.requests.scalars[...]`"),
        (b'{"storage":{"volumes":[["a"],3]}}', "at `$.storage.volumes[1]`"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_invalid_bytes_are_an_error_with_its_place(data: bytes, error: str) -> None:
    with pytest.raises(BlobError) as caught:
        decoded(data, Pod)
    assert str(caught.value).startswith(f"blob {digest_of(data).hex()}: ")
    assert error in str(caught.value)


def test_a_backslash_before_a_letter_is_text() -> None:
    value = pod(labels={"path": r"C:\ud800"})
    assert decoded(encode_value(value), Pod) == value


WRITTEN = encode_value(pod())
BLOB = compress(WRITTEN)
BOMB = compress(bytes(MAX_BLOB_BYTES + 1))


@pytest.mark.parametrize(
    ("blobs", "error"),
    [
        ({}, "not found"),
        ({digest_of(WRITTEN): b""}, "expected one complete stream of zlib"),
        ({digest_of(WRITTEN): BLOB[:-1]}, "expected one complete stream of zlib"),
        ({digest_of(WRITTEN): BLOB + b"x"}, "expected one complete stream of zlib"),
        ({digest_of(WRITTEN): b"no blob"}, "not in zlib's format: Error -3"),
        ({digest_of(WRITTEN): compress(b"other")}, f"have the digest {digest_of(b'other').hex()}"),
        ({digest_of(WRITTEN): BOMB}, "expected at most 33554432 bytes"),
        (
            {digest_of(WRITTEN): compress(bytes(2 * MAX_BLOB_BYTES))[:-9]},
            "expected at most 33554432 bytes",
        ),
    ],
    ids=["unknown", "empty", "cut off", "longer", "other", "replaced", "bomb", "broken bomb"],
)
def test_a_blob_that_is_not_what_its_digest_says_is_an_error(
    blobs: Mapping[bytes, bytes], error: str
) -> None:
    with pytest.raises(BlobError) as caught:
        read_blob(digest_of(WRITTEN), blobs.__getitem__)
    assert str(caught.value).startswith(f"blob {digest_of(WRITTEN).hex()}: ")
    assert error in str(caught.value)


def test_the_largest_value_can_be_read() -> None:
    largest = bytes(MAX_BLOB_BYTES)
    digest = digest_of(largest)
    assert read_blob(digest, {digest: compress(largest)}.__getitem__) == largest


def test_a_value_too_large_for_a_blob_is_refused() -> None:
    with pytest.raises(BlobError, match="str of 33554435 bytes: expected at most 33554432 bytes"):
        encode_value("x" * (MAX_BLOB_BYTES + 1))


@given(st.binary(max_size=200), st.integers(0, len(WRITTEN)))
def test_hostile_bytes_are_a_pod_or_an_error(inserted: bytes, place: int) -> None:
    data = WRITTEN[:place] + inserted + WRITTEN[place + len(inserted) :]
    try:
        read = decoded(data, Pod)
    except BlobError:
        return
    assert decoded(encode_value(read), Pod) == read


@given(st.binary(max_size=20), st.integers(0, len(BLOB)))
def test_a_blob_that_was_changed_is_never_read(inserted: bytes, place: int) -> None:
    blob = BLOB[:place] + inserted + BLOB[place + len(inserted) :]
    if zlib.decompressobj().decompress(BLOB) and blob != BLOB:
        with pytest.raises(BlobError):
            read_blob(digest_of(WRITTEN), {digest_of(WRITTEN): blob}.__getitem__)


def types_of(kind: Any, seen: dict[str, str]) -> Iterator[None]:
    """Add the fields of all classes of values that a type refers to."""
    for each in get_args(kind):
        yield from types_of(each, seen)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else ()
    names = names or getattr(kind, "_fields", ()) or getattr(kind, "__struct_fields__", ())
    name = getattr(kind, "__name__", "")
    if not names or name in seen:
        return
    hints = get_type_hints(kind)
    seen[name] = ", ".join(f"{each}: {hints[each]}" for each in names)
    for each in names:
        yield from types_of(hints[each], seen)


def test_the_format_grows_with_the_fields_of_a_snapshot() -> None:
    seen: dict[str, str] = {}
    list(types_of(Snapshot, seen))
    text = "\n".join(f"{name}({seen[name]})" for name in sorted(seen))
    found = (FORMAT, digest_of(text.encode()).hex()[:16])
    assert found == FIELDS_OF_FORMAT, "fields have changed: increase FORMAT, and note both here"
