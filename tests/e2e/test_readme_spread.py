"""The commands of the README about WorkloadSpread webhooks, pasted into a shell in one go."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen

import pytest
import yaml

from tests.commands import COMMAND, ROOT
from tests.e2e.clients import RELEASES, programs

HEADING = "## Webhooks of WorkloadSpreads\n"
PORT = "8001"
SECONDS = 120.0


def commands(port: int) -> str:
    """Return the commands of the section, with another port."""
    section = (ROOT / "README.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    lines = [line.removeprefix("    ") for line in section.splitlines() if line.startswith("    ")]
    return "\n".join(lines).replace(PORT, str(port))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def checkout(folder: Path, release: str) -> Path:
    """Return a folder with what the commands name: the program, the files, and kubectl."""
    programs_folder = folder / ".venv" / "bin"
    programs_folder.mkdir(parents=True)
    reprieve = programs_folder / "reprieve"
    reprieve.write_text(f"#!/bin/sh\nexec '{COMMAND[0]}' {COMMAND[1]} '{COMMAND[2]}' \"$@\"\n")
    reprieve.chmod(0o755)
    (programs_folder / "kubectl").symlink_to(programs(release)["kubectl"])
    for name in ("deploy", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def pasted(script: str, folder: Path) -> CompletedProcess[str]:
    """Run a script in a shell, and then stop all processes that it has started.

    Errors are those until then: the controllers may log that the server stops before them.
    """
    environment = {
        **os.environ,
        "HOME": str(folder),
        "PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    log = folder / "stderr"
    with (
        log.open("w") as stderr,
        Popen(
            ("bash", "-e", "-c", script),
            cwd=folder,
            env=environment,
            stdout=PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as shell,
    ):
        try:
            code = shell.wait(SECONDS)
            errors = log.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
        output, _ = shell.communicate()  # returns when no process is left
    return CompletedProcess(shell.args, code, output, errors)


@pytest.mark.parametrize("release", RELEASES)
def test_the_commands_spread_pods_as_documented(release: str, tmp_path: Path) -> None:
    port = free_port()
    done = pasted(commands(port), checkout(tmp_path, release))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\nrunning workloadspread on http://127.0.0.1:{port}\n" in done.stdout
    before, _, pods_and_spread = done.stdout.partition("\nNAME ")
    assert before.splitlines()[-3:] == [
        "workloadspread.apps.kruise.io/web created",
        "replicaset.apps/web created",
        "workloadspread.apps.kruise.io/web condition met",
    ]
    table, _, text = pods_and_spread.partition("\napiVersion:")
    header, *lines = (line.split() for line in table.splitlines())
    assert header[-1] == "POOL"
    assert sorted(line[5:] for line in lines) == [[], [], ["spot"], ["spot"], ["spot"]]
    spread = yaml.safe_load(f"apiVersion:{text}")
    assert spread["apiVersion"] == "apps.kruise.io/v1alpha1"
    assert "requiredNodeSelectorTerm" in spread["spec"]["subsets"][0]
    counts = {each["name"]: each["replicas"] for each in spread["status"]["subsetStatuses"]}
    assert counts == {"reserved": 2, "spot": 3}
