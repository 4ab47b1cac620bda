"""``reprieve why``: why a pod was preempted, or which pods it preempted, and what followed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from extender.cli.account_tables import evidence_table, why_table
from extender.cli.ledger_source import ENVIRONMENT, read_ledger
from extender.ledger.cluster_evidence import ClusterEvidence
from extender.ledger.storage.database import Database, LedgerError
from extender.ledger.storage.queries import Ledger
from extender.ledger.why import WhyDocument, why_document
from extender.terminal.command_line import (
    ContextOption,
    KubeconfigOption,
    OutputOption,
    parse_namespaced_name,
)
from extender.terminal.output import Answer, OutputFormat, print_answer, show_progress
from extender.terminal.program import log_line
from policies.kubernetes.input_error import InputError

if TYPE_CHECKING:
    from extender.ledger.inputs.counterfactuals import SparingChange  # loads the engines

EXAMPLE: Final = "why default/web-1 --ledger ledger.db"
_MOST_RECORDS: Final = 100
_MOST_OF_A_NAME: Final = 5_000
"""How many records of a name are searched for a UID."""

Found = WhyDocument | ClusterEvidence | None


class WhyOptionsError(InputError):
    """Options name more than one source."""


def why(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="NS/POD", parser=parse_namespaced_name, help="A pod, also one that is gone."
        ),
    ],
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            metavar="FILE|URL",
            help=f"A ledger: a file, or postgresql://…; default: ${ENVIRONMENT}, or the cluster.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="URL", help="URL of a Reprieve page, or of an API server."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="F", help="The token of --server; default: $REPRIEVE_TOKEN."
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    uid: Annotated[
        str, typer.Option("--uid", metavar="UID", help="The pod of this UID, of several by a name.")
    ] = "",
    counterfactuals: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(help="Find what would have spared a victim, if the ledger keeps the inputs."),
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show why a pod was preempted, or which pods it preempted, and what followed.

    From a ledger, the answer is complete. A cluster only has Events, which expire.
    """
    given = {
        "--ledger": ledger is not None,
        "--server": server is not None,
        "--kubeconfig": kubeconfig is not None,
        "--context": context is not None,
    }
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1 and names != ["--kubeconfig", "--context"]:
        raise WhyOptionsError(f"{' and '.join(names)} exclude each other")
    if token_file is not None and server is None:
        raise WhyOptionsError("--token-file: expected --server")
    location = ledger if names else os.environ.get(ENVIRONMENT) or None
    if location is not None:
        found, source = _from_ledger(location, pod, uid)
        if found is not None and "decision" in found and counterfactuals:
            _add_counterfactuals(location, found)
    elif server is not None:
        found, source = _from_server(server, token_file, pod, uid), server
    else:
        found, source = _from_cluster(kubeconfig, context, pod, uid), "the cluster"
    if found is None:
        of_uid = f" with UID {uid}" if uid else ""
        log_line(f"{pod}{of_uid}: no preemption of or for this pod is known to {source}")
        raise typer.Exit(1)
    _print(output, found)


def _print(output: OutputFormat, found: WhyDocument | ClusterEvidence) -> None:
    if "decision" in found:
        document = found
        print_answer(output, Answer(lambda: document, lambda rows: why_table(document, rows)))
        return
    evidence = found
    for problem in evidence["problems"]:
        log_line(problem)
    print_answer(output, Answer(lambda: evidence, lambda _: evidence_table(evidence)))


def _from_ledger(location: str, pod: str, uid: str) -> tuple[Found, str]:
    """Return what a ledger knows, and its location without a password."""

    async def read(database: Database) -> tuple[Found, str]:
        most = _MOST_OF_A_NAME if uid else _MOST_RECORDS
        records = await Ledger(database).records_of_pod(pod, most)
        return why_document(pod, uid, records), database.location

    return read_ledger(location, read)


def _add_counterfactuals(location: str, document: WhyDocument) -> None:
    """Add what would have spared the victim, if the ledger keeps the inputs of the decision."""
    decision = document["decision"]
    victims = (each for each in decision["entry"].victims if each.key == document["pod"])
    victim = next(victims, None)
    if victim is None or not decision["entry"].snapshot:
        return
    from extender.ledger.inputs.counterfactuals import find_sparing_changes  # start-up time

    async def read(database: Database) -> Sequence[SparingChange] | None:
        return await find_sparing_changes(Ledger(database), decision["entry"].id, victim.uid)

    try:
        found = read_ledger(location, read)
    except LedgerError as error:
        log_line(str(error))
        return
    if found is not None:
        document["counterfactuals"] = [
            {"change": each.change, "outcome": each.outcome} for each in found
        ]


def _from_server(url: str, token_file: Path | None, pod: str, uid: str) -> Found:
    from extender.cli.why_server import ask_server, read_token  # imported on use: start-up time

    return _ask(ask_server(url, read_token(token_file), pod, uid))


def _from_cluster(kubeconfig: Path | None, context: str | None, pod: str, uid: str) -> Found:
    return _ask(_ask_cluster(kubeconfig, context, pod, uid))


async def _ask_cluster(kubeconfig: Path | None, context: str | None, pod: str, uid: str) -> Found:
    from extender.cli.why_server import ask_cluster
    from extender.kube.rest.client import Client
    from extender.kube.rest.connection import connect

    transport = await connect(None, kubeconfig, context)
    try:
        return await ask_cluster(Client(transport), transport.url, pod, uid)
    finally:
        await transport.close()


def _ask(question: Awaitable[Found]) -> Found:
    """Return the answer of a server; exit with 1 if it has none."""
    from extender.kube.rest.api_errors import ApiError, MalformedError
    from extender.kube.rest.transport import TransportError

    async def ask() -> Found:
        return await question

    try:
        with show_progress("asking the server"):
            return asyncio.run(ask())
    except (ApiError, MalformedError, TransportError) as error:
        log_line(" ".join(str(error).split()))
        raise typer.Exit(1) from None
