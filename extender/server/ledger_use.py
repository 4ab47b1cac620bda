"""The ledger of a serving process, as the configuration asks for it."""

from __future__ import annotations

import random
from functools import partial
from typing import Final

from msgspec import structs

from extender.cluster.object_stores import PodStore
from extender.config.component_config import Config, LedgerConfig, Mode
from extender.config.rules_source import read_rules_source
from extender.kube.rest.clock import Clock
from extender.ledger.decision_recorder import DecisionRecorder
from extender.ledger.entry import WRITER_BITS
from extender.ledger.entry_builder import EntryBuilder
from extender.ledger.outcomes import OutcomeTracker
from extender.ledger.storage.location import open_database
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import Limits
from extender.ledger.writer import LedgerWriter
from policies.preemption.policy import KUBE_SCHEDULER

_DAY_NS: Final = 24 * 3600 * 10**9


def build_recorder(
    settings: Config, config: LedgerConfig, pods: PodStore, clock: Clock, rng: random.Random
) -> DecisionRecorder:
    """Return what records decisions, and follows what becomes of the pods of ``pods``.

    ``config`` is the ledger of the ``settings``.
    """
    tracker = OutcomeTracker(clock.now_ns)
    pods.observer = tracker
    writer = LedgerWriter(
        partial(open_database, config.location, Access.WRITE),
        tracker,
        Limits(int(config.keep_days * _DAY_NS), config.max_mib * 2**20),
        clock,
        pods.by_key,
    )
    verbs = [verb.value for verb in config.verbs]
    observed = settings.mode is Mode.OBSERVE
    if observed:  # the choices that are kept are kube-scheduler's
        settings = structs.replace(settings, policy=KUBE_SCHEDULER.name)
    return DecisionRecorder(
        writer,
        EntryBuilder(config.team_label, observed=observed),
        verbs,
        rng.getrandbits(WRITER_BITS),
        partial(read_rules_source, settings) if config.snapshots else None,
    )
