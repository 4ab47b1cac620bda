"""Fault injection as values: plans, rules, effects, and the injector. Pure."""

from __future__ import annotations

from fakeapi.apiserver.testing.fault_injection.injector import FaultInjector
from fakeapi.apiserver.testing.fault_injection.plan_validation import PlanError

__all__ = ["FaultInjector", "PlanError"]
