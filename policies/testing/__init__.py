"""Tests of plugins and policies: laws on random clusters, and builders of what decisions read.

It needs the extra ``testing``.
"""

from __future__ import annotations

from policies.testing.checks import check_plugin, check_policy
from policies.testing.values import budget, node, pod, snapshot

__all__ = ["budget", "check_plugin", "check_policy", "node", "pod", "snapshot"]
