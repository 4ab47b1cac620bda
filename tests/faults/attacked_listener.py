"""A listener in a process of its own, which reports its memory.

    python -m tests.faults.attacked_listener

Print the port. For each line on stdin, wait until no client is connected and no call is decoded,
which may go on for some steps after its client has left, collect garbage as
``serve`` does each minute, and print the resident memory now and at most so far, in MiB.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from pathlib import Path

import extender.protocol.vectorized_json_values  # noqa: F401 - loads numpy, as serve has before
from extender.config.component_config import ConnectionLimits
from extender.server.python_gc import return_free_memory
from extender.terminal.log_output import log_to_stderr
from tests.extender.secure_serving.raw_clients import run_listener

BUDGET_MIB = 64


async def main() -> None:
    """Serve until stdin ends."""
    log_to_stderr()
    async with run_listener(ConnectionLimits(in_flight_mib=BUDGET_MIB)) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        idle = len(asyncio.all_tasks())
        while await asyncio.to_thread(sys.stdin.readline):
            await server.wait_for_connections(0)
            while len(asyncio.all_tasks()) > idle:  # noqa: ASYNC110 - no event for this
                await asyncio.sleep(0)
            gc.collect()
            return_free_memory()
            sys.stdout.write(memory_line())
            sys.stdout.flush()


def memory_line() -> str:
    """Return the resident memory now and at most so far, in MiB."""
    sizes = re.findall(r"Vm(?:RSS|HWM):\s+(\d+) kB", Path("/proc/self/status").read_text())
    peak, now = (int(size) // 1024 for size in sizes)
    return f"{now} {peak}\n"


if __name__ == "__main__":
    asyncio.run(main())
