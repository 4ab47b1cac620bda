"""Recordings in files: whole, truncated and invalid ones."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.recording.files import RecordingError, RecordingFile, parse_recording, read_recording
from extender.recording.format import encode_event, version_object
from tests.extender.recording.recording_lines import an_object, header, line

LINES = (
    header(),
    line(0, "LISTED", an_object("a")),
    encode_event(0, "BOOKMARK", "pods", version_object("7")),
    line(1.5, "MODIFIED", an_object("a", metadata={"labels": {"x": "ä"}})),
    line(2, "DELETED", an_object("a")),
)
WHOLE = b"".join(LINES)
PACKED = gzip.compress(WHOLE, mtime=0)


class TestWholeFiles:
    @pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
    def test_a_written_recording_is_read_back(self, tmp_path: Path, name: str) -> None:
        path = str(tmp_path / name)
        with RecordingFile(path) as file:
            for each in LINES:
                file.write(each)
        recording = read_recording(path)
        assert (recording.source, recording.truncated_at) == (path, "")
        assert [(e.at_ns, e.type, e.key, e.line) for e in recording.events] == [
            (0, "LISTED", "default/a", 2),
            (0, "BOOKMARK", "", 3),
            (1_500_000_000, "MODIFIED", "default/a", 4),
            (2_000_000_000, "DELETED", "default/a", 5),
        ]
        assert recording.header.start_ns == 1_767_225_600_500_000_000
        assert recording.duration_ns == 2_000_000_000

    def test_a_gz_name_means_compression(self, tmp_path: Path) -> None:
        for name, first in (("a.gz", b"\x1f\x8b"), ("a.jsonl", b"{")):
            with RecordingFile(str(tmp_path / name)) as file:
                file.write(WHOLE)
            assert (tmp_path / name).read_bytes().startswith(first)

    def test_a_last_line_without_an_end_counts_if_it_is_whole(self) -> None:
        recording = parse_recording(WHOLE[:-1], "f")
        assert (len(recording.events), recording.truncated_at) == (4, "")

    @pytest.mark.parametrize("padding", [b"", bytes(512)])
    def test_concatenated_gzip_members_are_one_recording(self, padding: bytes) -> None:
        """Parallel compressors and ``cat`` write such files."""
        data = b"".join(gzip.compress(each, mtime=0) for each in LINES) + padding
        recording = parse_recording(data, "f")
        assert (len(recording.events), recording.truncated_at) == (4, "")

    def test_unknown_fields_are_ignored(self) -> None:
        more = {**orjson.loads(LINES[0]), "weather": "fine"}
        event = {**orjson.loads(LINES[1]), "weather": "fine"}
        data = orjson.dumps(more) + b"\n" + orjson.dumps(event) + b"\n"
        assert len(parse_recording(data, "f").events) == 1


class TestTruncatedFiles:
    @given(st.integers(len(LINES[0]), len(WHOLE)))
    def test_a_truncated_plain_file_is_read_to_its_end(self, length: int) -> None:
        recording = parse_recording(WHOLE[:length], "f")
        whole = WHOLE[:length].count(b"\n") - 1
        assert len(recording.events) - whole in (0, 1)
        torn = WHOLE[:length].split(b"\n")[-1]
        if len(recording.events) == whole and torn:
            assert recording.truncated_at == f"f: breaks off in line {whole + 2}"
        else:
            assert recording.truncated_at == ""

    @given(st.integers(0, len(PACKED) - 1))
    def test_a_truncated_compressed_file_is_read_to_its_end(self, length: int) -> None:
        inflate = zlib.decompressobj(31)
        there = inflate.decompress(PACKED[:length])
        if b"\n" in there:
            recording = parse_recording(PACKED[:length], "f")
            whole = there.count(b"\n")
            assert len(recording.events) == whole - 1
            assert recording.truncated_at == f"f: breaks off in line {whole + 1}"
        else:
            with pytest.raises(RecordingError, match="f: line 1: expected the header"):
                parse_recording(PACKED[:length], "f")

    @pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
    def test_a_flushed_recording_is_readable_without_close(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        with RecordingFile(str(path)) as file:
            file.write(b"".join(LINES[:3]))
            file.flush()
            survived = path.read_bytes()
            file.write(LINES[3])
        recording = parse_recording(survived, "f")
        assert len(recording.events) == 2
        assert bool(recording.truncated_at) == name.endswith(".gz")


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "error_text"),
        [
            (b"", "line 1: expected the header of a recording"),
            (LINES[0][:40], "line 1: expected the header of a recording, it breaks off"),
            (b'{"kind":"List"}\n', 'line 1: expected the header of a recording: {"format":'),
            (b"[]\n", "line 1: expected the header of a recording"),
            (
                LINES[0].replace(b'"version":1', b'"version":2'),
                "line 1: version 2 of the format; expected at most 1",
            ),
            (
                LINES[0].replace(b'"version":1', b'"version":"x"'),
                "line 1: version 'x' of the format; expected at most 1",
            ),
            (
                LINES[0].replace(b"2026-01-01T00:00:00.5Z", b"yesterday"),
                "line 1: start: 'yesterday'; expected a time such as",
            ),
            (
                LINES[0].replace(b"2026-01-01", b"2026-13-41"),
                "line 1: start: '2026-13-41T00:00:00.5Z'; expected a time such as",
            ),
            (
                LINES[0].replace(b'"namespace":""', b'"namespace":7'),
                "line 1: namespace: expected str, got int",
            ),
            (LINES[0] + b"{\n" + LINES[1], "line 2: not JSON: "),
            (LINES[0] + b"\n" + LINES[1], "line 2: not JSON: "),
            (
                LINES[0] + LINES[1].replace(b"LISTED", b"SEEN"),
                "line 2: type: invalid enum value 'SEEN'",
            ),
            (LINES[0] + LINES[1].replace(b'"t":0', b'"t":-1'), "line 2: t: expected int >= 0"),
            (
                LINES[0] + LINES[1].replace(b'"t":0', b'"t":100000000000000000000'),
                "line 2: t: expected int <= 316224000000000000",
            ),
            (
                LINES[0] + LINES[1].replace(b'"name":"a"', b'"name":""'),
                "line 2: object: expected an apiVersion, a kind and a metadata.name",
            ),
            (
                LINES[0] + LINES[1].replace(b'"uid":"a"', b'"uid":"\xff"') + LINES[2],
                "line 2: not JSON: ",
            ),
            (PACKED + b"and more", "damaged gzip data after line 5: Error -3"),
            (PACKED[:-8] + bytes(8), "damaged gzip data after line 0: Error -3"),
        ],
    )
    def test_an_error_is_reported_in_one_line(self, data: bytes, error_text: str) -> None:
        with pytest.raises(RecordingError) as error:
            parse_recording(data, "f")
        assert str(error.value).startswith(f"f: {error_text}")
        assert "\n" not in str(error.value)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(RecordingError, match="cannot be read: No such file"):
            read_recording(str(tmp_path / "none"))

    def test_a_path_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(RecordingError, match="cannot be written: No such file"):
            RecordingFile(str(tmp_path / "none" / "f"))

    def test_a_full_disk(self) -> None:
        with (
            pytest.raises(RecordingError, match="/dev/full: cannot be written: No space"),
            RecordingFile("/dev/full") as file,
        ):
            file.write(WHOLE)
