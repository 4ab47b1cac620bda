"""Hypothesis profiles: CI repeats exactly, a local run explores, nightly and fuzz dig deeper."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dev", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2000)
settings.register_profile("fuzz", settings.get_profile("dev"), max_examples=2_500)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "dev")
)
