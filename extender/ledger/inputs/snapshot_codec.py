"""The bytes of immutable values: canonical JSON, compressed, and named by their digest.

Equal values have equal bytes: sets and mappings are sorted, and every field is written. So the
digest of the bytes identifies the value. The bytes of a value are kept as a *blob*, in zlib's
format. Dataclasses are objects, named tuples are arrays, and enumerations are their values.

Blobs come from files of strangers. They are decoded into the declared types only, and no code in
them is run. A blob is decompressed up to :data:`MAX_BLOB_BYTES`, and its digest is verified. A
field that is missing has its default, so that older blobs stay readable.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from policies.kubernetes.input_error import InputError

T = TypeVar("T")

GetBlob = Callable[[bytes], bytes]
"""Returns the blob with a digest. Raises KeyError if there is none."""

MAX_BLOB_BYTES: Final = 32 * 2**20
"""The largest size of the bytes of a value; a node with 500 pods takes half a MiB."""
DIGEST_BYTES: Final = 16
_LEVEL: Final = 3
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_SURROGATE: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
"""An escape for half a character; texts with one cannot be encoded again."""


class BlobError(InputError, ValueError):
    """A blob is missing or invalid, or a value is too large for one."""


def encode_value(value: object) -> bytes:
    """Return the bytes of a value. Raise BlobError if it is too large."""
    data = _ENCODER.encode(value)
    if len(data) > MAX_BLOB_BYTES:
        size = f"{type(value).__name__} of {len(data)} bytes"
        raise BlobError(f"{size}: expected at most {MAX_BLOB_BYTES} bytes")
    return data


def digest_of(data: bytes) -> bytes:
    """Return the digest of bytes: BLAKE2b with 128 bits."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def compress(data: bytes) -> bytes:
    """Return the blob of the bytes of a value."""
    return zlib.compress(data, _LEVEL)


def read_blob(digest: bytes, get: GetBlob) -> bytes:
    """Return the bytes of a value by their digest. Raise BlobError."""
    place = f"blob {digest.hex()}"
    try:
        blob = get(digest)
    except KeyError:
        raise BlobError(f"{place}: not found") from None
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(blob, MAX_BLOB_BYTES + 1)
    except zlib.error as error:
        raise BlobError(f"{place}: not in zlib's format: {error}") from None
    if len(data) > MAX_BLOB_BYTES:
        raise BlobError(f"{place}: expected at most {MAX_BLOB_BYTES} bytes")
    if not inflating.eof or inflating.unused_data:
        raise BlobError(f"{place}: expected one complete stream of zlib")
    if digest_of(data) != digest:
        raise BlobError(f"{place}: its bytes have the digest {digest_of(data).hex()}")
    return data


def decode_value(digest: bytes, data: bytes, kind: type[T]) -> T:
    """Return the value with these bytes. Raise BlobError with the path of an invalid field."""
    return convert_value(digest, parse_json(digest, data), kind)


def parse_json(digest: bytes, data: bytes) -> object:
    """Return the JSON value of bytes; integers have any size, as amounts of devices do.

    Raise BlobError.
    """
    place = f"blob {digest.hex()}"
    if b"\\u" in data and _SURROGATE.search(data):
        raise BlobError(f"{place}: half a character; expected pairs of surrogates")
    try:
        value: object = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BlobError(f"{place}: not JSON: {error}") from None
    return value


def convert_value(digest: bytes, content: object, kind: type[T]) -> T:
    """Return a JSON value as a type. Raise BlobError with the path of an invalid field."""
    try:
        return msgspec.convert(content, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BlobError(f"blob {digest.hex()}: {error}") from None
