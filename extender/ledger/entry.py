"""An entry of the ledger: one decision, the reasons for it, and what followed.

An entry is written once, with the decision. What followed is written later, so it is kept apart
(:class:`Outcome`). Both consist of copied strings and numbers, and hold no snapshot.

The body of an entry is compressed JSON. Entries resemble each other more than they resemble
themselves, so the compression begins with a dictionary of their common parts: a body of 2,000 bytes
takes about 400. A dictionary is never changed: a new one would be a new format (``FORMAT``).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from extender.kube.decoders.object_meta import format_time

FORMAT: Final = 1
"""The version of the tables and bodies of a ledger."""

MICROSECOND_NS: Final = 1000
WRITER_BITS: Final = 10
_ID: Final = re.compile(r"[0-7][0-9a-f]{15}")
_MAX_BODY: Final = 16 * 2**20
"""Bytes of a body; a longer one is no body of a ledger."""


class LedgerPod(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """A pod at the time of a decision.

    ``owner`` is ``Kind/name`` of its controller, ``team`` the value of the label that the
    configuration names, ``requests`` are by resource: cpu in milliCPU, memory in bytes.
    ``run_seconds`` is the time since its start. Of pods that the decision does not evict, only the
    name, the priority and the requests are kept.
    """

    namespace: str
    name: str
    uid: str
    priority: int
    priority_class: str = ""
    team: str = ""
    owner: str = ""
    requests: Mapping[str, int] = {}
    run_seconds: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def owner_key(self) -> str:
        """``namespace/Kind/name`` of its owner, or of the pod itself without one."""
        return f"{self.namespace}/{self.owner or f'Pod/{self.name}'}"


class LedgerCandidate(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """A node with the victims that would have made room on it.

    ``criteria`` are the values of the entry's ``criteria``, in their order; the smaller is better.
    ``allocatable`` and ``requested`` are those of the node before the preemption, as the requests
    of a pod. These, ``criteria`` and ``spared`` are those of the chosen one and the runner-up.
    """

    node: str
    victims: tuple[LedgerPod, ...] = ()
    spared: tuple[LedgerPod, ...] = ()
    num_pdb_violations: int = msgspec.field(default=0, name="numPDBViolations")
    violated_pdbs: tuple[str, ...] = msgspec.field(default=(), name="violatedPDBs")
    criteria: tuple[int, ...] = ()
    allocatable: Mapping[str, int] = {}
    requested: Mapping[str, int] = {}


class LedgerEntry(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """One decision.

    ``id`` encodes its time; see :func:`entry_id`. ``kept`` are some of the candidates: the chosen
    one first, then the runner-up, then others; ``candidates`` is the number of all. ``rejected``
    counts nodes by reason. ``fallback`` is set if no decision could be made: the reason and the
    kind of the answer. ``digest`` is that of the body of the call. ``snapshot`` is the digest of
    the inputs, if the ledger keeps them, or else empty. If it is ``observed``, the choice is
    kube-scheduler's own, as it follows from the call: the answer left it to kube-scheduler.
    """

    id: int
    verb: str
    pod: LedgerPod
    node: str | None = None
    decided_by: str | None = None
    kept: tuple[LedgerCandidate, ...] = ()
    criteria: tuple[str, ...] = ()
    candidates: int = 0
    untried: int = 0
    fits: int | None = None
    rejected: Mapping[str, int] = {}
    protected: Mapping[str, int] = {}
    refused_attempt: str = ""
    refused_nodes: Mapping[str, int] = {}
    search: str = ""
    message: str = ""
    notes: tuple[str, ...] = ()
    fallback: str = ""
    policy: str = ""
    release: str = ""
    request_id: str = msgspec.field(default="", name="requestID")
    generation: int = 0
    pods_version: str = ""
    digest: str = ""
    snapshot: str = ""
    took_microseconds: int = 0
    observed: bool = False

    @property
    def at_ns(self) -> int:
        """The time of the decision, in nanoseconds since the epoch."""
        return time_of_id(self.id)

    @property
    def at(self) -> str:
        """The time of the decision, as RFC 3339."""
        return format_time(self.at_ns)

    @property
    def chosen(self) -> LedgerCandidate | None:
        """The chosen candidate."""
        return None if self.node is None else self.kept[0]

    @property
    def runner_up(self) -> LedgerCandidate | None:
        """The second best candidate."""
        return self.kept[1] if self.node is not None and len(self.kept) > 1 else None

    @property
    def victims(self) -> tuple[LedgerPod, ...]:
        """The victims of the chosen candidate, the most important first."""
        return () if self.chosen is None else self.chosen.victims


class State(Enum):
    """What became of the preemptor.

    ``OPEN``: it is followed. ``BOUND``: it was bound to a node. ``DELETED``: it was deleted, or
    finished, before. ``SUPERSEDED``: a later decision about it came before. ``UNKNOWN``: it was
    followed until a deadline.
    """

    OPEN = "open"
    BOUND = "bound"
    DELETED = "deleted"
    SUPERSEDED = "superseded"
    UNKNOWN = "unknown"


class VictimOutcome(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What became of a victim; times are nanoseconds since the epoch, 0 if it is not known.

    ``gone_ns`` is when it was deleted or finished. ``replacement`` is the name of the pod that took
    its place: the next of its owner. That was bound to ``node`` at ``bound_ns``.
    """

    gone_ns: int = 0
    replacement: str = ""
    node: str = ""
    bound_ns: int = 0


class Outcome(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """What followed a decision; ``victims`` are in the order of the entry's victims."""

    state: State = State.OPEN
    node: str = ""
    ended_ns: int = 0
    victims: tuple[VictimOutcome, ...] = ()


class LedgerShadow(msgspec.Struct, frozen=True):
    """What a shadow policy would have chosen: the name of the policy, and the entry of its choice.

    The entry has the ID of the decision.
    """

    policy: str
    entry: LedgerEntry


class LedgerRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry with its outcome, and with what shadow policies would have chosen, by name."""

    entry: LedgerEntry
    outcome: Outcome
    shadows: tuple[LedgerShadow, ...] = ()


class UnreadableEntryError(ValueError):
    """The body of an entry cannot be decoded."""


def entry_id(at_ns: int, writer: int, after: int = 0) -> int:
    """Return the ID of a new entry, greater than ``after``, the last one of this writer.

    Its upper bits are the microseconds since the epoch, so IDs are in the order of time; the lower
    ones are those of the ``writer``, so that several can write to one database.
    """
    lower = writer % 2**WRITER_BITS
    found = at_ns // MICROSECOND_NS << WRITER_BITS | lower
    return max(found, ((after >> WRITER_BITS) + 1) << WRITER_BITS | lower)


def first_id(at_ns: int) -> int:
    """Return the smallest ID of an entry at a time or later."""
    return -(-at_ns // MICROSECOND_NS) << WRITER_BITS


def time_of_id(number: int) -> int:
    """Return the time of an entry, in nanoseconds since the epoch."""
    return (number >> WRITER_BITS) * MICROSECOND_NS


def format_id(number: int) -> str:
    """Return an ID as commands and links write it."""
    return f"{number:016x}"


def parse_id(text: str) -> int | None:
    """Return the ID that a text writes, or None."""
    return int.from_bytes(bytes.fromhex(text)) if _ID.fullmatch(text) else None


def encode_body(entry: LedgerEntry) -> bytes:
    """Return the compressed body of an entry, without its ID."""
    compressor = zlib.compressobj(level=6, wbits=-15, zdict=_DICTIONARY)
    text = msgspec.json.encode(msgspec.structs.replace(entry, id=0))
    return compressor.compress(text) + compressor.flush()


def decode_body(number: int, body: bytes) -> LedgerEntry:
    """Return the entry with an ID and a body. Raise UnreadableEntryError."""
    decompressor = zlib.decompressobj(wbits=-15, zdict=_DICTIONARY)
    try:
        text = decompressor.decompress(body, _MAX_BODY)
        if not decompressor.eof:
            raise UnreadableEntryError("the body of an entry is cut short or too long")
        return msgspec.structs.replace(_DECODER.decode(text), id=number)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableEntryError(f"the body of an entry is invalid: {error}") from None


_DECODER: Final = msgspec.json.Decoder(LedgerEntry)
_POD: Final = (
    '{"namespace":"default","name":"","uid":"","priority":1000000000,"priorityClass":"high",'
    '"team":"","owner":"StatefulSet/","requests":{"cpu":1000,"memory":1073741824,'
    '"nvidia.com/gpu":1,"ephemeral-storage":0},"runSeconds":100},'
)
_DICTIONARY: Final = (
    '"rejected":{"node(s) had untolerated taint(s)":1,"Insufficient cpu":1,"Insufficient memory":1,'
    '"Insufficient nvidia.com/gpu":1,"Too many pods":1,"node(s) didn\'t match Pod\'s node '
    'affinity/selector":1,"node(s) were unschedulable":1,"No preemption victims found for incoming '
    'pod":1,"Preemption is not helpful for scheduling":1,"protected":{},"refusedAttempt":"",'
    '"refusedNodes":{},"search":"no victims are cheaper by","untried":1,"fits":1,"fallback":"late: '
    'waited 0. s; error","policy":"kube-scheduler","release":"1.38","requestID":"","generation":1,'
    '"podsVersion":"","digest":"","snapshot":"","tookMicroseconds":1'
    '"notes":["deferred: no own candidate","left out: "],'
    '"message":"0/5000 nodes are available: 5000 Insufficient cpu. preemption: 0/ nodes are '
    "available: 1 No preemption victims found for incoming pod, Preemption is not helpful for "
    'scheduling.",'
    '{"id":1,"verb":"preempt","pod":{"namespace":"default","name":"","uid":"","priority":'
    '"owner":"ReplicaSet/","owner":"Job/","owner":"StatefulSet/","priorityClass":"low",'
    '"criteria":["fewest PDB violations","lowest priority of the first victim","smallest sum of '
    'priorities","fewest victims","latest start of the most important victims"],"candidates":1,'
    '"node":"node-1","decidedBy":"latest start of the most important victims","kept":['
    '"numPDBViolations":1,"violatedPDBs":["'
    f'{{"node":"node-1","victims":[{_POD}],"spared":[{_POD}],"criteria":[0,0,2147483648,1,-1700000],'
    '"allocatable":{"cpu":64000,"memory":274877906944,"nvidia.com/gpu":8,"pods":110},"requested":'
    '{"cpu":64000,"memory":274877906944,"nvidia.com/gpu":8}},'
).encode()
"""The common parts of bodies, the most frequent last."""
