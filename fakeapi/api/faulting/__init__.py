"""Faults as values: what may go wrong, for whom, how often, and what a request meets. Pure."""

from __future__ import annotations

from fakeapi.api.faulting.fields import PlanError
from fakeapi.api.faulting.live import Faults

__all__ = ["Faults", "PlanError"]
