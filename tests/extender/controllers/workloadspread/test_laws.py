"""The laws of spreading, over random histories; tests/e2e runs two hundred more.

1. As limits are numbers, no subset ever has more active pods than its limit.
2. In an idle cluster each subset is full before the next one has a pod: subsets are filled in
   order, and emptied in reverse.
3. In an idle cluster the status agrees with the pods, and nothing is in flight.
4. In adaptive mode no pod waits long for a zone that is closed.

They hold however often the controller is killed between its writes, or its requests fail. A webhook
that is cut off after it has recorded the creation or deletion of a pod may be wrong until such
records expire, as upstream's is: then the first two laws are checked again once the workload has
grown from zero.
"""

from __future__ import annotations

import pytest

from tests.extender.controllers.workloadspread.history_runner import run_each
from tests.properties.sampling import seeds


@pytest.mark.parametrize("seed", seeds(3, 20))
async def test_laws(seed: int) -> None:
    await run_each([seed])
