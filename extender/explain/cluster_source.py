"""The cluster of a command: files, or the API server of a kubeconfig or URL."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from extender.explain.cluster_objects import (
    ClusterObjects,
    WarnAboutFields,
    list_objects,
    no_warnings,
    read_objects,
)
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.transport import TransportError
from extender.terminal.output import show_progress
from extender.terminal.program import log_line
from policies.kubernetes.input_error import InputError


class ClusterOptionsError(InputError):
    """Options name more than one cluster."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The options ``--cluster``, ``--kubeconfig``, ``--context`` and ``--server``.

    Without any, the cluster is that of the default kubeconfig, as for kubectl.
    """

    files: Sequence[str] = ()
    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None
    warn: WarnAboutFields = no_warnings

    @property
    def given(self) -> Sequence[str]:
        """The options that are given, by name."""
        options = {
            "--cluster": bool(self.files),
            "--kubeconfig": self.kubeconfig is not None,
            "--context": self.context is not None,
            "--server": self.server is not None,
        }
        return [option for option, is_given in options.items() if is_given]

    def read(self, kinds: Mapping[str, Collection[str]]) -> ClusterObjects:
        """Return the objects of the files, or those of ``kinds`` in the live cluster.

        Raise ManifestError, ClusterOptionsError and ConnectionConfigError. Exit with 1 if the
        server does not list them.
        """
        self.require_one()
        if self.files:
            with show_progress(f"reading {', '.join(self.files)}"):
                return read_objects(self.files, self.warn)
        try:
            with show_progress("listing the objects of the cluster"):
                found = asyncio.run(self.list_live(kinds))
        except (ApiError, MalformedError, TransportError) as error:
            log_line(" ".join(str(error).split()))
            raise typer.Exit(1) from None
        for problem in found.problems:
            log_line(problem)
        return found

    def require_one(self) -> None:
        """Raise ClusterOptionsError if the options name more than one cluster."""
        given = self.given
        if len(given) > 1 and given != ["--kubeconfig", "--context"]:
            raise ClusterOptionsError(f"{' and '.join(given)} exclude each other")

    async def list_live(self, kinds: Mapping[str, Collection[str]]) -> ClusterObjects:
        """Return the objects of ``kinds`` in the live cluster.

        Raise ConnectionConfigError, ApiError, MalformedError and TransportError.
        """
        from extender.kube.rest.connection import connect  # imported on use: start-up time

        transport = await connect(self.server, self.kubeconfig, self.context)
        try:
            return await list_objects(Client(transport), transport.url, kinds)
        finally:
            await transport.close()
