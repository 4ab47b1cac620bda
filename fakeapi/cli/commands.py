"""All commands of ``reprieve``: those of the extender, and those that need fakeapi."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from extender.cli.root_command import EmbeddedCluster, build_command_line, run_command_line
from extender.cli.workloadspread_commands import validate_commands
from extender.config.strict_decoding import ConfigError
from extender.controllers.process import command
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from fakeapi.cli import replay_command
from fakeapi.cli.serve_command import EXAMPLE, serve_fakeapi
from fakeapi.demo import captured_requests
from fakeapi.demo import command as demo
from fakeapi.demo.scenarios import UnknownScenarioError, scenario
from fakeapi.testing.fake_cluster import FakeCluster


@asynccontextmanager
async def embedded_cluster(name: str) -> AsyncIterator[EmbeddedCluster]:
    """Start a shipped scenario as a cluster in this process; raises ConfigError for other names."""
    try:
        objects = scenario(name)
    except UnknownScenarioError as error:
        raise ConfigError(f"--embedded: {error}") from None
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects)
        result_log = captured_requests.LastResultLog()
        console = captured_requests.wide_console()
        yield EmbeddedCluster(
            cluster.local_transport(),
            result_log,
            lambda extender: captured_requests.send_requests(extender, result_log, console),
        )


def run_commands() -> None:
    """Run the command line."""
    app = build_command_line(embedded_cluster)
    app.command("fakeapi", epilog=EXAMPLE)(serve_fakeapi)
    app.command("controllers", epilog=command.EXAMPLE)(command.controllers_command(pod_spec_errors))
    app.command("replay", epilog=replay_command.EXAMPLE)(replay_command.replay_events)
    app.add_typer(validate_commands(pod_spec_errors), name="validate")
    app.command("demo", epilog=demo.EXAMPLE)(demo.show_demo)
    run_command_line(app)
