"""A cluster of some size: 200 nodes, and 5,000 pods, of which a fifth are still to be scheduled."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.conformance.scheduling.kube_scheduler import ONE_NODE
from tests.conformance.scheduling.pods import admitted, host, newcomer, resident
from tests.conformance.scheduling.stage import Scene, Setting, Stage

NODES: Final = 200
RESIDENTS: Final = 20
LATER: Final = 5
"""How many are on each node beforehand, and for how many there is room."""
AT_A_TIME: Final = 100
"""The number of pods awaited at a time: the timeout is meant for one."""
URGENT: Final = 20
"""How many want as much as all that came later on a node have."""


async def five_thousand_pods(stage: Stage) -> None:
    """All land, none where there is no room; then the cheapest make room for what is urgent."""
    await stage.load(*(host(f"node-{n}", cpu=str(RESIDENTS + LATER)) for n in range(NODES)))
    there = (f"{n}-{i}" for n in range(NODES) for i in range(RESIDENTS))
    await stage.load(*(resident(f"old-{n}", f"node-{n.split('-')[0]}", "1", 10) for n in there))
    names = [f"later-{n}" for n in range(NODES * LATER)]
    await stage.load(*(admitted(newcomer(name, "1", 5)) for name in names))
    places: dict[str, str] = {}
    for first in range(0, len(names), AT_A_TIME):
        places |= await stage.placed(*names[first : first + AT_A_TIME])
    assert set(Counter(places.values()).values()) == {LATER}
    urgent = [f"urgent-{n}" for n in range(URGENT)]
    await stage.load(*(admitted(newcomer(name, str(LATER), 100)) for name in urgent))
    await stage.nominated(*urgent)
    leaving = await stage.told_to_go(URGENT * LATER)
    await stage.let_go()
    landed = await stage.placed(*urgent)
    assert Counter(places[name] for name in leaving) == dict.fromkeys(landed.values(), LATER)
    assert len(set(landed.values())) == URGENT
    assert set(stage.removed()) == set(leaving)


SCENES: Final = [Scene(five_thousand_pods, Setting(ONE_NODE, serving={"search": "cluster"}))]
