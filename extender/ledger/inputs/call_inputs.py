"""Everything that a preempt call reads, as blobs: enough to decide it again.

The blob of a decision has the preemptor, the candidates that kube-scheduler offered, the pending
pods among their victims, and the digests of two values: the snapshot (see
:mod:`extender.ledger.inputs.snapshot_blobs`), and the source of the rules. An offered victim that
is on its node is stored as its place among the pods of the node, any other one as its UID.

The source of the rules has the text of the policy file, comments included. The rules are built
from it as ``serve`` builds them, with the costs and guards in Python of the packages that are
installed then. The time that was left is not stored: a decision that was cut short at its deadline
may be another one if it is decided again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from extender.config.rules_source import RulesSource
from extender.ledger.inputs.snapshot_blobs import FORMAT, EncodedValue, SnapshotEncoder
from extender.ledger.inputs.snapshot_codec import BlobError, GetBlob, decode_value, read_blob
from extender.ledger.inputs.snapshot_reader import (
    Digest,
    Prefetch,
    SnapshotReader,
    prefetch_nothing,
    verify_format,
)
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import CallContext, Search
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.engine import Engine


@dataclass(frozen=True, slots=True)
class CallInputs:
    """The inputs of a call; ``pending_pods`` are those that were offered as victims, by UID."""

    args: PreemptArgs
    snapshot: Snapshot
    search: Search
    pending_pods: Mapping[str, Pod]
    rules: RulesSource

    def context(self, engine: Engine) -> CallContext:
        """Return the context to decide in again, by an engine with the rules, without a limit."""
        return CallContext(self.snapshot, engine, self.search, pending_pods=self.pending_pods)


def inputs_of(args: PreemptArgs, context: CallContext, rules: RulesSource) -> CallInputs:
    """Return what the decision of a call in a context reads."""
    pending = context.pending_pods
    offered = (uid for offer in args.candidates.values() for uid in offer.uids)
    named = {uid: pending[uid] for uid in offered if uid in pending}
    return CallInputs(args, context.snapshot, context.search, named, rules)


class _Offer(NamedTuple):
    """A candidate of kube-scheduler; ``victims`` are places among the pods of the node, or UIDs."""

    node: str
    victims: tuple[int | str, ...]
    violations: int


class _StoredInputs(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    format: int
    preemptor: Pod
    offers: tuple[_Offer, ...]
    search: Search
    pending_pods: dict[str, Pod]
    snapshot: Digest
    rules: Digest


def encode_inputs(inputs: CallInputs, encoder: SnapshotEncoder) -> EncodedValue:
    """Return the digest of inputs, and the blobs that the encoder has not returned before.

    Raise BlobError for a value that is too large.
    """
    stored = _StoredInputs(
        FORMAT,
        inputs.args.pod,
        tuple(
            _stored_offer(node, offer, inputs.snapshot)
            for node, offer in inputs.args.candidates.items()
        ),
        inputs.search,
        dict(inputs.pending_pods),
        encoder.put(inputs.snapshot),
        encoder.writer.put(inputs.rules),
    )
    return EncodedValue(encoder.writer.put(stored), encoder.writer.take())


def decode_inputs(digest: bytes, get: GetBlob) -> CallInputs:
    """Return the inputs with a digest.

    Raise BlobError if a blob is missing or invalid, or of a later format.
    """
    return InputsReader(get).read(digest)


class InputsReader:
    """Reads the inputs of one decision after the other; what they share is decoded once."""

    def __init__(self, get: GetBlob, prefetch: Prefetch = prefetch_nothing) -> None:
        self._get = get
        self._snapshots = SnapshotReader(get, prefetch=prefetch)
        self._rules: tuple[bytes, RulesSource] | None = None

    @property
    def changed(self) -> frozenset[str]:
        """The names of the nodes by which the last two snapshots differ."""
        return self._snapshots.changed

    def read(self, digest: bytes) -> CallInputs:
        """Return inputs. Raise the errors of :func:`decode_inputs`."""
        stored = decode_value(digest, read_blob(digest, self._get), _StoredInputs)
        verify_format(digest, stored.format)
        snapshot = self._snapshots.read(stored.snapshot)
        offers = {each.node: _loaded_offer(digest, each, snapshot) for each in stored.offers}
        args = PreemptArgs(stored.preemptor, offers)
        rules = self._source(stored.rules)
        return CallInputs(args, snapshot, stored.search, stored.pending_pods, rules)

    def _source(self, digest: bytes) -> RulesSource:
        if self._rules is None or self._rules[0] != digest:
            source = decode_value(digest, read_blob(digest, self._get), RulesSource)
            self._rules = digest, source
        return self._rules[1]


def _stored_offer(node: str, offer: CandidateVictims, snapshot: Snapshot) -> _Offer:
    state = snapshot.nodes.get(node)
    pods = () if state is None else state.pods
    places = {pod.uid: place for place, pod in enumerate(pods)}
    victims = tuple([places.get(uid, uid) for uid in offer.uids])
    return _Offer(node, victims, offer.violations)


def _loaded_offer(digest: bytes, stored: _Offer, snapshot: Snapshot) -> CandidateVictims:
    state = snapshot.nodes.get(stored.node)
    pods = () if state is None else state.pods
    uids: list[str] = []
    for each in stored.victims:
        if isinstance(each, str):
            uids.append(each)
        elif 0 <= each < len(pods):
            uids.append(pods[each].uid)
        else:
            place = f"blob {digest.hex()}: offers: node {stored.node}"
            raise BlobError(f"{place}: no pod {each}; expected less than {len(pods)}")
    return CandidateVictims(tuple(uids), stored.violations)
