"""The tools about a ledger: ``why`` and ``list``, as functions of its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from extender.ledger.decision_rows import list_document
from extender.ledger.entry import LedgerRecord, format_id, parse_id
from extender.ledger.storage.queries import NEWEST_ID, Kind, Selection
from extender.ledger.why import WhyDocument, why_document
from extender.mcp.arguments import (
    InvalidArgumentsError,
    ListArguments,
    WhyArguments,
    time_argument,
)
from extender.mcp.results import ToolError, ToolResult, counted, quoted, tool_result

_IN_TEXT: Final = 3
_LINES_IN_TEXT: Final = 20


def why_result(
    arguments: WhyArguments, records: Sequence[LedgerRecord], location: str
) -> ToolResult:
    """Return the result of ``why`` from the records of a name. Raise ToolError if there is none."""
    document = why_document(arguments.pod, arguments.uid, records)
    if document is None:
        of_uid = f" with UID {quoted(arguments.uid)}" if arguments.uid else ""
        raise ToolError(
            f"pod {quoted(arguments.pod)}{of_uid}: no preemption of or for it is in {location}"
        )
    return tool_result(_why_sentences(document), {**document})


def list_selection(arguments: ListArguments, now_ns: int) -> Selection:
    """Return what ``list`` selects. Raise InvalidArgumentsError."""
    since_ns = time_argument(arguments.since, "since", now_ns) if arguments.since else 0
    until_ns = time_argument(arguments.until, "until", now_ns) if arguments.until else now_ns
    if since_ns > until_ns:
        raise InvalidArgumentsError(
            "arguments: since: expected a time before until, and before now"
        )
    return Selection(
        since_ns,
        until_ns,
        arguments.namespace,
        arguments.priority_class,
        Kind(arguments.kind),
        NEWEST_ID if not arguments.before else parse_id(arguments.before) or 0,
    )


def list_result(records: Sequence[LedgerRecord], limit: int) -> ToolResult:
    """Return the result of ``list`` from the newest records, one more than ``limit`` if any.

    ``before`` of the document is the cursor of older decisions, or null.
    """
    shown = records[:limit]
    before = format_id(shown[-1].entry.id) if len(records) > limit else None
    rows = list_document(shown)
    sentences = [f"{counted(len(rows), 'decision')}, the newest first."]
    sentences += [f"{row['at']}: {quoted(row['summary'])}." for row in rows[:_IN_TEXT]]
    if before is not None:
        sentences.append(f"Older ones follow before {before}.")
    return tool_result(sentences, {"decisions": rows, "before": before})


def _why_sentences(document: WhyDocument) -> Iterator[str]:
    shown = document["decision"]
    yield f"{shown['at']}: {quoted(shown['summary'])}."
    for line in shown["account"][:_LINES_IN_TEXT]:
        yield f"{line['topic']}: {quoted(line['text'])}."
    if len(shown["account"]) > _LINES_IN_TEXT:
        yield f"The document has {len(shown['account']) - _LINES_IN_TEXT} more lines."
    if document["others"]:
        yield f"Other decisions about it: {len(document['others'])}."
