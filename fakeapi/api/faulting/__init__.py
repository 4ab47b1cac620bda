"""Fault injection as values: plans, rules, effects, and the injector. Pure."""

from __future__ import annotations

from fakeapi.api.faulting.fields import PlanError
from fakeapi.api.faulting.live import FaultInjector

__all__ = ["FaultInjector", "PlanError"]
