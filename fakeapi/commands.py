"""All commands of ``reprieve``: those of the extender, and those that need fakeapi."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from extender.cli import EmbeddedCluster, build_command_line, run_command_line
from extender.config import ConfigError
from extender.spreadcommands import validate_commands
from fakeapi import replaycommand, standalone
from fakeapi.api.podspecs import pod_spec_errors
from fakeapi.demo import command as demo
from fakeapi.demo import questions
from fakeapi.harness import FakeCluster
from fakeapi.scenarios import UnknownScenarioError, scenario
from fakeapi.serving import EXAMPLE, serve_fakeapi


@asynccontextmanager
async def embedded_cluster(name: str) -> AsyncIterator[EmbeddedCluster]:
    """Start a shipped scenario as a cluster in this process; raises ConfigError for other names."""
    try:
        objects = scenario(name)
    except UnknownScenarioError as error:
        raise ConfigError(f"--embedded: {error}") from None
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects)
        witness = questions.LastResultLog()
        console = questions.wide_console()
        yield EmbeddedCluster(
            cluster.local_transport(),
            witness,
            lambda extender: questions.send_requests(extender, witness, console),
        )


def run_commands() -> None:
    """Run the command line."""
    app = build_command_line(embedded_cluster)
    app.command("fakeapi", epilog=EXAMPLE)(serve_fakeapi)
    app.command("controllers", epilog=standalone.EXAMPLE)(
        standalone.controllers_command(pod_spec_errors)
    )
    app.command("replay", epilog=replaycommand.EXAMPLE)(replaycommand.replay_events)
    app.add_typer(validate_commands(pod_spec_errors), name="validate")
    app.command("demo", epilog=demo.EXAMPLE)(demo.show_demo)
    run_command_line(app)
