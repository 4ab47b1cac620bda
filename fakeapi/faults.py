"""Faults for tests: what the fake API server does to requests that match a rule."""

from __future__ import annotations

from fakeapi.testing.faults import Fault, FaultControl, fault

__all__ = ["Fault", "FaultControl", "fault"]
