"""The formats of traces, and how the format of a file is found: by its columns or its suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from fakeapi.backtest.traces import generic_csv, gpu_v2025, openb, philly, simkube, synthetic
from fakeapi.backtest.traces.node_lists import is_node_list, read_nodes
from fakeapi.backtest.traces.rows import CellError, CsvJobs, Row, read_header, shown
from fakeapi.backtest.traces.simkube import SimkubeJobs
from fakeapi.backtest.traces.synthetic import SyntheticWorkload
from fakeapi.backtest.traces.trace import Trace, TraceError, TraceJob, TraceNode, read_trace
from policies.kubernetes.input_error import similar_name
from policies.kubernetes.integers import INT64_MAX

Nodes = Path | Sequence[TraceNode] | None
"""The nodes of a trace: a list in a file, or themselves; None for those of the trace."""


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """A format of CSV files: ``job`` makes a job of a row that has ``columns``, and maybe more."""

    columns: tuple[str, ...]
    job: Callable[[Row], TraceJob]
    assumptions: tuple[str, ...]
    class_names: Mapping[int, str] = field(default_factory=dict)
    assumed_nodes: Callable[[], tuple[TraceNode, ...]] | None = None
    node_assumption: str = ""


CSV_FORMATS: Final[Mapping[str, CsvFormat]] = {
    "openb": CsvFormat(openb.COLUMNS, openb.openb_job, openb.ASSUMPTIONS, openb.CLASS_NAMES),
    "gpu-v2025": CsvFormat(
        gpu_v2025.COLUMNS,
        gpu_v2025.gpu_v2025_job,
        gpu_v2025.ASSUMPTIONS,
        gpu_v2025.CLASS_NAMES,
        gpu_v2025.assumed_nodes,
        gpu_v2025.NODE_ASSUMPTION,
    ),
    "philly": CsvFormat(
        philly.COLUMNS,
        philly.philly_job,
        philly.ASSUMPTIONS,
        philly.CLASS_NAMES,
        philly.assumed_nodes,
        philly.NODE_ASSUMPTION,
    ),
    "csv": CsvFormat(generic_csv.COLUMNS, generic_csv.generic_job, generic_csv.ASSUMPTIONS),
}
SIMKUBE: Final = "simkube"
FORMATS: Final = (*CSV_FORMATS, SIMKUBE)

_SYNTHETIC: Final = "synthetic"
_SIMKUBE_SUFFIXES: Final = (".sktrace", ".json")
_CSV_SUFFIXES: Final = (".csv", ".csv.gz")
_DEFAULT_LIST: Final = "default"
_ALL_NODES: Final = "all_node"
_PARAMETERS: Final = {"nodes": 100_000, "pods": 10**8, "days": 3650, "seed": INT64_MAX, "load": 10}
"""The parameters of a synthetic trace, and their largest values."""


def open_trace(address: str, format_name: str | None = None, nodes: Nodes = None) -> Trace:
    """Open a trace, and read it once.

    ``address`` is a file, a directory with one list of jobs and maybe one of nodes, or
    ``synthetic`` with or without parameters. ``format_name`` is one of :data:`FORMATS`; by default
    it is found by the columns, or the suffix. Without ``nodes``, a list of nodes beside the jobs is
    read. Raise TraceError.
    """
    if format_name is not None and format_name not in FORMATS:
        raise TraceError(
            f"format: expected {', '.join(FORMATS)}; found {format_name[:20]}"
            f"{_suggestion(format_name)}"
        )
    if address == _SYNTHETIC or address.startswith(f"{_SYNTHETIC}:"):
        return _synthetic(address)
    path = Path(address)
    if path.is_dir():
        path = _job_list(path)
    if format_name == SIMKUBE or (format_name is None and path.name.endswith(_simkube_suffixes())):
        return _simkube(path, nodes)
    name = format_name or _format_of(path)
    return _csv(path, name, CSV_FORMATS[name], nodes)


def _simkube_suffixes() -> tuple[str, ...]:
    return (*_SIMKUBE_SUFFIXES, *(f"{suffix}.gz" for suffix in _SIMKUBE_SUFFIXES))


def _suggestion(name: str) -> str:
    similar = similar_name(name, FORMATS)
    return f"; did you mean {similar}?" if similar else ""


def _csv(path: Path, name: str, form: CsvFormat, nodes: Nodes) -> Trace:
    columns = read_header(path)
    missing = [column for column in form.columns if column not in columns]
    if missing:
        raise TraceError(
            f"{path}: format {name}: expected the columns {', '.join(form.columns)}; missing: "
            f"{', '.join(missing)}"
        )
    found = _read_nodes(nodes) or _read_nodes(_node_list(path.parent))
    assumptions = form.assumptions
    if not found and form.assumed_nodes:
        found = form.assumed_nodes()
        assumptions = (*assumptions, form.node_assumption)
    if not found:
        raise TraceError(f"{path}: format {name}: expected a list of nodes, too")
    return read_trace(CsvJobs(path, form.job), found, assumptions, form.class_names)


def _simkube(path: Path, nodes: Nodes) -> Trace:
    found = _read_nodes(nodes) or _read_nodes(_node_list(path.parent))
    if not found:
        raise TraceError(f"{path}: format {SIMKUBE}: expected a list of nodes, too")
    return read_trace(SimkubeJobs(path), found, simkube.ASSUMPTIONS, {})


def _synthetic(address: str) -> Trace:
    workload = parse_synthetic(address)
    assumptions = (*synthetic.ASSUMPTIONS, *openb.ASSUMPTIONS)
    return read_trace(workload, workload.node_list(), assumptions, openb.CLASS_NAMES)


def parse_synthetic(address: str) -> SyntheticWorkload:
    """Return the workload of an address such as ``synthetic:pods=1000``. Raise TraceError."""
    numbers = {}
    for part in filter(None, address.partition(":")[2].split(",")):
        name, _, value = part.partition("=")
        if name not in _PARAMETERS:
            raise TraceError(
                f"{_SYNTHETIC}: expected {', '.join(_PARAMETERS)}; found {shown((name,))}"
            )
        numbers[name] = _parameter(name, value)
    return msgspec.convert(numbers, SyntheticWorkload)


def _parameter(name: str, value: str) -> float:
    largest = _PARAMETERS[name]
    scale = 1000 if name == "load" else 1
    try:
        number = Row(0, {name: value}).number(name, scale, largest * scale)
    except CellError as error:
        raise TraceError(f"{_SYNTHETIC}: {error}; expected a number up to {largest}") from None
    if not number and name != "seed":
        raise TraceError(f"{_SYNTHETIC}: {name}: expected more than zero")
    return number / scale if name == "load" else number


def _read_nodes(nodes: Nodes) -> tuple[TraceNode, ...]:
    if isinstance(nodes, Path):
        return read_nodes(nodes)
    return tuple(nodes or ())


def _format_of(path: Path) -> str:
    columns = read_header(path)
    found = _matching_format(columns)
    if found is None:
        expected = "; ".join(f"{name}: {', '.join(f.columns)}" for name, f in CSV_FORMATS.items())
        raise TraceError(
            f"{path}: expected the columns of a trace ({expected}) or a name that ends in "
            f"{' or '.join(_SIMKUBE_SUFFIXES)} ({SIMKUBE}); found the columns {shown(columns)}"
        )
    return found


def _matching_format(columns: Sequence[str]) -> str | None:
    return next((n for n, form in CSV_FORMATS.items() if {*columns} >= {*form.columns}), None)


def _job_list(directory: Path) -> Path:
    """Return the only list of jobs of a directory, or the one with ``default`` in its name."""
    files = [path for path in _csv_files(directory) if _matching_format(_columns(path))]
    files += [each for each in _files(directory) if each.name.endswith(".sktrace")]
    chosen = [path for path in files if _DEFAULT_LIST in path.name] if len(files) > 1 else files
    if len(chosen) != 1:
        found = shown([path.name for path in files]) or "none"
        raise TraceError(
            f"{directory}: expected one file with jobs, or one with {_DEFAULT_LIST} in its name; "
            f"found {found}"
        )
    return chosen[0]


def _node_list(directory: Path) -> Path | None:
    """Return the only list of nodes in a directory, or the one with ``all_node`` in its name."""
    files = [path for path in _csv_files(directory) if is_node_list(_columns(path))]
    chosen = [path for path in files if _ALL_NODES in path.name] if len(files) > 1 else files
    if files and len(chosen) != 1:
        raise TraceError(
            f"{directory}: expected one list of nodes, or one with {_ALL_NODES} in its name; "
            f"found {shown([path.name for path in files])}"
        )
    return chosen[0] if chosen else None


def _columns(path: Path) -> tuple[str, ...]:
    try:
        return read_header(path)
    except TraceError:
        return ()


def _csv_files(directory: Path) -> list[Path]:
    return [path for path in _files(directory) if path.name.endswith(_CSV_SUFFIXES)]


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.is_file())
    except OSError as error:
        raise TraceError(f"{directory}: cannot be read: {error.strerror or error}") from None
