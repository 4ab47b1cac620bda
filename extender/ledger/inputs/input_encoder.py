"""The inputs of decisions as blobs, for the ledger.

A ledger keeps a blob for as long as it keeps the decisions of the hour in which the blob was
written last. So each hour begins with a new encoder, which returns all blobs that are in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from extender.ledger.inputs.call_inputs import CallInputs, encode_inputs
from extender.ledger.inputs.snapshot_blobs import SnapshotEncoder
from extender.ledger.inputs.snapshot_codec import BlobError

MOST_WAITING: Final = 200
"""The most decisions whose inputs wait: each refers to a snapshot."""


class EncodedInputs(NamedTuple):
    """The digests of inputs by the ID of their entry, and the blobs that are to be written."""

    digests: Mapping[int, bytes]
    blobs: Mapping[bytes, bytes]


class InputEncoder:
    """Encodes the inputs of decisions in their order. It is used by one thread at a time."""

    def __init__(self) -> None:
        self._encoder = SnapshotEncoder()
        self._hour = 0

    def encode(self, inputs: Mapping[int, CallInputs], hour: int) -> EncodedInputs:
        """Encode inputs by the ID of their entry, in an hour since the epoch.

        Inputs with a value that is too large are left out.
        """
        if hour != self._hour:
            self._encoder, self._hour = SnapshotEncoder(), hour
        digests: dict[int, bytes] = {}
        blobs: dict[bytes, bytes] = {}
        for number, each in inputs.items():
            try:
                encoded = encode_inputs(each, self._encoder)
            except BlobError:
                continue
            digests[number] = encoded.digest
            blobs.update(encoded.blobs)
        return EncodedInputs(digests, blobs)

    def reset(self) -> None:
        """Return all blobs again from the next call on, because some could not be written."""
        self._hour = 0
