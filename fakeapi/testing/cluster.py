"""Clusters in this process: the operations on a world, whichever way clients connect to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extender.controllers.process.controller_manager import ControllerManager
from extender.kube.rest.client import Client
from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.testing.object_history import ObjectHistory
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.controlplane.scheduler.options import SchedulerOptions
from fakeapi.simulation.background_tasks import BackgroundTasks
from fakeapi.simulation.world import World
from fakeapi.testing.faults import FaultControl
from fakeapi.testing.local_objects import LocalObjects
from fakeapi.testing.object_sources import ObjectSources, read_objects, sources_in_errors

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from extender.recording.files import Recording, RecordingFile
    from fakeapi.replay.report import Report


class Cluster(LocalObjects):
    """A world with a control plane; subclasses define how clients connect to it."""

    client: Client
    """A client with the administrator's credentials; set once the cluster has been entered."""

    def __init__(self, world: World, run: tuple[str, ...], certificate: str = "") -> None:
        super().__init__(world)
        self._run = run
        self._background_tasks = BackgroundTasks(world, run, certificate)
        self._stack = AsyncExitStack()

    async def __aexit__(self, *_error: object) -> None:
        await self._stack.aclose()

    @property
    def control_plane(self) -> ControllerManager:
        """The components of the control plane by name; each can be started, paused and stepped."""
        return self._background_tasks.control_plane

    @property
    def api(self) -> Api:
        """The API as a pure function, without server or transport."""
        return self.world.api

    @property
    def faults(self) -> FaultControl:
        """Fault injection between clients and the API; inactive until a plan is started."""
        return FaultControl(self.world.management.faults.ask)

    @property
    def scheduler(self) -> SchedulerOptions:
        """The scheduler's options; ``trace`` holds its calls to extenders and their answers."""
        return self.world.component_options.scheduler

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests, oldest first."""
        return self.world.requests

    def load(self, objects: ObjectSources) -> int:
        """Store objects, files, globs or text (one or several), and return how many objects.

        Nothing passes admission. Custom resources are defaulted and validated; their definitions
        may be among the objects. The arguments are not modified. Raises ManifestError for a file
        that cannot be read, and StatusError (400, 422) with a line for each problem.
        """
        documents, sources = read_objects(objects)
        with sources_in_errors(sources):
            return self.world.api.load(documents)

    def export(self) -> list[dict[str, Any]]:
        """Return all objects as manifests that :meth:`load` accepts."""
        return self.world.export()

    def snapshot(self, name: str = "") -> str:
        """Save the current state under ``name`` (or a generated name) and return the name."""
        return self.world.management.snapshots.save(name)

    def restore(self, name: str) -> None:
        """Restore a snapshot's objects; every watch expires. Raises StatusError (404)."""
        self.world.management.snapshots.restore(name)

    def reset(self) -> None:
        """Delete all objects and the history; every watch expires.

        The control plane then creates its own objects again, as after the start.
        """
        self.world.management.reset()

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        return self.world.history(kind, namespace, name)

    def record(self, path: str | Path) -> AbstractContextManager[RecordingFile]:
        """Record all writes into a file until the block ends; raises RecordingError."""
        from fakeapi.simulation.store_recorder import record_world  # imported on use: start-up time

        return record_world(self.world, str(path))

    async def replay(
        self,
        recording: str | Path | Recording,
        head_start: float = 0.0,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Report:
        """Play a recording into this cluster with the running components attached, and compare.

        The recorded resources start as they were listed. A paused clock is advanced by the length
        of the recording and the time that the attached components need afterwards (at least one
        second); a running clock plays the recording at the clock's speed. Watchers have
        ``head_start`` seconds to read the initial state; then ``before`` is awaited. See
        docs/record-replay.md. Raises RecordingError, ReplayError, UnsupportedComponentError, and
        TypeError if the cluster was created with a ``clock`` of another type.
        """
        from extender.recording.files import Recording, read_recording  # on use: start-up time
        from fakeapi.replay.player import Player, replay

        clock = self.world.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError(f"the cluster was created with a clock of another type: {clock!r}")
        if not isinstance(recording, Recording):
            recording = read_recording(str(recording))
        player = Player(self.world, recording, self._run)
        return await replay(player, clock, head_start, before)

    def local_transport(self, agent: str = "") -> LocalTransport:
        """Return a transport to the API without sockets; ``agent`` is its User-Agent."""
        return self.world.transport(agent)
