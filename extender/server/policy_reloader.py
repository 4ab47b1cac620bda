"""The policy file: loaded at first, and again when it changes.

The content of the file is compared every ten seconds, as that of certificates is (see
:mod:`extender.secure_serving.dynamic_certificates`): Kubernetes replaces the files of a ConfigMap
by renaming a symlink. An invalid file is not used: the previous policy stays in use, and the error
is reported until the file is valid again.

A policy is used when all that it reads is there. Kinds of objects that only it reads are listed
first, and watched from then on. Pods are decoded with only those annotations that
a policy reads. So if a new policy reads others, the pods are listed and decoded again, while the
previous policy still decides. Then the columns of the new engine are built in a thread, since that
takes a second for 100,000 pods. The change itself is the assignment of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from extender.cluster.event_handlers import build_policy_reflectors, relist_pods
from extender.config.strict_decoding import ConfigError
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.clock import Clock
from extender.observability.metrics import Metrics
from extender.server.service import Service
from policies.engine_selection import build_engine
from policies.preemption.policy import SchedulerRules

RELOAD_INTERVAL_SECONDS: Final = 10.0

LoadRules = Callable[[], SchedulerRules]
"""Returns the rules with the current policy. Raises ConfigError."""
UseRules = Callable[[SchedulerRules], Awaitable[None]]
"""Decides by other rules from its end on."""


class PolicyReloader:
    """The rules with the policy of a file; a built-in policy never changes.

    Raises ConfigError if the first load fails. ``error`` is the error of the current file, "" if it
    is in use.
    """

    def __init__(self, name_or_path: str, load: LoadRules, metrics: Metrics, clock: Clock) -> None:
        self._path = Path(name_or_path)
        self._load = load
        self._metrics = metrics
        self._clock = clock
        self._log = structlog.get_logger()
        self._content = self._read()
        self.rules = load()
        self.error = ""

    def warning(self) -> str:
        """Return the warning for ``/readyz?verbose``, "" if the file is in use."""
        name = self.rules.policy.name
        return self.error and f"policy not reloaded; {name!r} stays in use: {self.error}"

    async def reload(self, use: UseRules) -> None:
        """Use the policy of a file that has changed; keep the previous one if it is invalid."""
        content = self._read()
        if content == self._content and not self.error:
            return
        try:
            rules = self._load()
        except ConfigError as error:
            self._keep_previous("; ".join(error.errors))
            return
        await use(rules)
        self._content, self.rules, self.error = content, rules, ""
        self._log.info("policy_reloaded", policy=rules.policy.name)

    async def run(self, use: UseRules) -> None:
        """Reload the file every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(RELOAD_INTERVAL_SECONDS)
            await self.reload(use)

    def _read(self) -> bytes | None:
        """Return the content of the file; None if there is none that can be read."""
        try:
            return self._path.read_bytes()
        except (OSError, ValueError):  # ValueError: a name that is no path
            return None

    def _keep_previous(self, error: str) -> None:
        if error != self.error:
            self._metrics.policy_errors.inc()
            name = self.rules.policy.name
            self._log.error("policy_not_reloaded", problem=error, policy=name)
        self.error = error


@dataclass(slots=True)
class PolicyUse:
    """Changes the policy of a service; ``kept`` are the annotations that its pods keep.

    ``reflectors`` are those that run, ``context`` is theirs, and ``start`` runs one more.
    """

    service: Service
    reflectors: dict[str, Reflector[Any]]
    kept: frozenset[str]
    context: ReflectorContext
    start: Callable[[Reflector[Any]], None]

    async def use(self, rules: SchedulerRules) -> None:
        """Decide by other rules from the next decision after the end on."""
        if not rules.annotations <= self.kept:
            # The previous policy needs its own annotations until it is replaced.
            self.kept |= rules.annotations
            await relist_pods(self.reflectors, rules.release, self.kept)
        await self._watch_more(rules)
        engine = build_engine(rules)
        await asyncio.to_thread(engine.follow, self.service.cluster.snapshot())
        self.service.use(engine)

    async def _watch_more(self, rules: SchedulerRules) -> None:
        """Start the reflectors of other kinds that the rules read; return when they are settled."""
        stores = self.service.cluster.policy_objects
        for name, reflector in build_policy_reflectors(self.context, stores, rules).items():
            if name not in self.reflectors:
                self.reflectors[name] = reflector
                self.start(reflector)
                await reflector.wait_settled()
