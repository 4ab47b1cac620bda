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

Shadow policies, whose decisions are only recorded, are loaded and reloaded in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import structs

from extender.cluster.event_handlers import build_policy_reflectors, relist_pods
from extender.config.component_config import Config, Mode
from extender.config.strict_decoding import ConfigError
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.clock import Clock
from extender.observability.metrics import Metrics
from extender.server.service import Service
from extender.server.shadow_decisions import combined_rules
from policies.engine_selection import build_engine
from policies.preemption.engine import Engine
from policies.preemption.policy import KUBE_SCHEDULER, SchedulerRules

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

    def __init__(self, name_or_path: str, load: LoadRules, metrics: Metrics) -> None:
        self._path = Path(name_or_path)
        self._load = load
        self._metrics = metrics
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


class ServedPolicies:
    """The policies of a configuration: what decides answers, and the shadow policies.

    In the mode ``observe``, kube-scheduler decides, and the configured policy is the first shadow
    policy. ``load_rules`` returns the rules with the policy that a configuration names. Raises
    ConfigError.
    """

    def __init__(
        self, config: Config, load_rules: Callable[[Config], SchedulerRules], metrics: Metrics
    ) -> None:
        self._config = config
        self._load_rules = load_rules
        self._live: PolicyReloader | None = None
        self.shadows: list[PolicyReloader] = []
        if config.mode is Mode.ENFORCE:
            self._live = PolicyReloader(config.policy, lambda: load_rules(config), metrics)
        for place, each in enumerate(config.recorded_policies):
            load = partial(self._load_shadow, place, each)
            self.shadows.append(PolicyReloader(each, load, metrics))

    @property
    def rules(self) -> SchedulerRules:
        """The rules by which answers are decided."""
        if self._live is None:
            return replace(self.shadows[0].rules, policy=KUBE_SCHEDULER, policy_rules=())
        return self._live.rules

    @property
    def rules_read(self) -> SchedulerRules:
        """Rules that read what all policies read."""
        return combined_rules(self.rules, [each.rules for each in self.shadows])

    def warnings(self) -> Sequence[Callable[[], str]]:
        """Return what returns the warnings for ``/readyz?verbose``."""
        return [each.warning for each in (self._live, *self.shadows) if each is not None]

    async def run(self, use: PolicyUse, clock: Clock) -> None:
        """Reload the files every ten seconds, one after the other, until cancelled."""
        while True:
            await clock.sleep(RELOAD_INTERVAL_SECONDS)
            if self._live is not None:
                await self._live.reload(use.use)
            for place, each in enumerate(self.shadows):
                await each.reload(partial(use.use_shadow, place))

    def _load_shadow(self, place: int, name_or_path: str) -> SchedulerRules:
        rules = self._load_rules(structs.replace(self._config, policy=name_or_path))
        name = rules.policy.name
        for other, each in enumerate(self.shadows):
            if other != place and each.rules.policy.name == name:
                problem = f"{name!r} is the name of another shadow policy; expected another name"
                raise ConfigError(f"{name_or_path}: {problem}")
        return rules


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
        self.service.use(await self._prepare(rules))

    async def use_shadow(self, place: int, rules: SchedulerRules) -> None:
        """Use other rules of a shadow policy from the next of its decisions after the end on."""
        engine = await self._prepare(rules)
        if self.service.shadows is not None:
            self.service.shadows.use(place, engine)
        self.service.metrics.policy_reloads.inc()

    async def _prepare(self, rules: SchedulerRules) -> Engine:
        """Return an engine with the rules when all that they read is there."""
        if not rules.annotations <= self.kept:
            # The previous policy needs its own annotations until it is replaced.
            self.kept |= rules.annotations
            await relist_pods(self.reflectors, rules.release, self.kept)
        await self._watch_more(rules)
        engine = build_engine(rules)
        await asyncio.to_thread(engine.follow, self.service.cluster.snapshot())
        return engine

    async def _watch_more(self, rules: SchedulerRules) -> None:
        """Start the reflectors of other kinds that the rules read; return when they are settled."""
        stores = self.service.cluster.policy_objects
        for name, reflector in build_policy_reflectors(self.context, stores, rules).items():
            if name not in self.reflectors:
                self.reflectors[name] = reflector
                self.start(reflector)
                await reflector.wait_settled()
