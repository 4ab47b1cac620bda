"""The releases of docs/eviction.md are those whose rules differ."""

from __future__ import annotations

import re
from itertools import pairwise

from policies.eviction.kubelet_releases import EVICTION_RELEASES
from tests.commands import ROOT

EVICTION = (ROOT / "docs" / "eviction.md").read_text()


def test_every_release_that_changes_something_is_in_the_document() -> None:
    listed = set(re.findall(r"^\| (1\.\d\d) \|", EVICTION, re.MULTILINE))
    rules = list(EVICTION_RELEASES.items())
    changed = {
        name
        for (_, before), (name, after) in pairwise(rules)
        if {key for key in before.__slots__ if getattr(before, key) != getattr(after, key)}
        != {"name"}
    }
    assert listed == changed
