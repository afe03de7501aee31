"""What a trace may be packed in, and what is said of a file that is none."""

from __future__ import annotations

import gzip
import io
import json
import threading
import zipfile
import zlib
from pathlib import Path

import pytest
from trace_files import counts, document, events, kernel, op, read_text, render
from trace_twin import rows_of, rows_read

from tracelock.errors import TracelockError
from tracelock.trace import read_trace, source

EVENTS = events(2000)
TEXT = document([render(event, "kineto") for event in EVENTS], "kineto").encode()


@pytest.fixture(params=["isal", "zlib"])
def _inflate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "zlib":
        monkeypatch.setattr(source, "_inflate", zlib)
    else:
        pytest.importorskip("isal")


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return the bytes of a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def members(text: bytes, size: int) -> bytes:
    """Return gzip data of several members."""
    return b"".join(gzip.compress(text[i : i + size]) for i in range(0, len(text), size))


PACKED = {
    "plain": TEXT,
    "byte order mark": b"\xef\xbb\xbf" + TEXT,
    "space before and after": b" \n\t" + TEXT + b"\n\n",
    "gzip": gzip.compress(TEXT),
    "gzip, stored": gzip.compress(TEXT, 0),
    "gzip with a byte order mark": gzip.compress(b"\xef\xbb\xbf" + TEXT),
    "gzip of many members": members(TEXT, 1000),
    "gzip of members larger than a piece": members(TEXT, 300_000),
    "gzip with an empty member": gzip.compress(b"") + gzip.compress(TEXT) + gzip.compress(b""),
    "gzip with padding": gzip.compress(TEXT) + bytes(512),
    "zip": zipped(("trace.json", TEXT)),
    "zip, stored": zipped(("trace.json", TEXT), method=zipfile.ZIP_STORED),
    "zip, bzip2": zipped(("trace.json", TEXT), method=zipfile.ZIP_BZIP2),
    "zip from a Mac": zipped(("trace.json", TEXT), ("__MACOSX/._trace.json", b"x")),
}


@pytest.mark.usefixtures("_inflate")
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.zip", "trace"])
@pytest.mark.parametrize("packed", PACKED)
def test_the_content_of_a_file_counts_not_its_name(tmp_path: Path, packed: str, name: str) -> None:
    trace = read_text(tmp_path, PACKED[packed], name)
    assert rows_read(trace) == rows_of(EVENTS)
    assert trace.facts.warnings == ()
    assert trace.facts.bytes == len(PACKED[packed])
    assert abs(trace.facts.json_bytes - len(TEXT)) <= 8
    assert not [thread for thread in threading.enumerate() if thread.name == "tracelock-inflate"]


@pytest.mark.usefixtures("_inflate")
@pytest.mark.parametrize("kept", [0.3, 0.9, 0.9999])
def test_a_compressed_file_that_ends_early_is_read_as_far_as_it_goes(tmp_path: Path, kept: float) -> None:
    packed = gzip.compress(TEXT)
    kept_bytes = packed[: int(len(packed) * kept)]
    trace = read_text(tmp_path, kept_bytes, "trace.json.gz")
    readable = zlib.decompressobj(31).decompress(kept_bytes)
    rows = len(trace.host) + len(trace.device)
    assert rows >= readable.count(b'"ph"') - 1
    assert trace.facts.quality == "partial"
    assert counts(trace)["archive-cut-off"] == 1


@pytest.mark.usefixtures("_inflate")
def test_a_compressed_file_that_lacks_only_its_checksum_says_so(tmp_path: Path) -> None:
    trace = read_text(tmp_path, gzip.compress(TEXT)[:-6], "trace.json.gz")
    assert rows_read(trace) == rows_of(EVENTS)
    assert counts(trace) == {"archive-cut-off": 1}


@pytest.mark.usefixtures("_inflate")
@pytest.mark.parametrize("place", [0.5, 0.9])
def test_corrupt_compressed_data_are_read_up_to_the_fault(tmp_path: Path, place: float) -> None:
    packed = bytearray(gzip.compress(TEXT, 1))
    middle = int(len(packed) * place)
    packed[middle : middle + 64] = bytes(range(64))
    trace = read_text(tmp_path, bytes(packed), "trace.json.gz")
    assert trace.facts.quality == "partial"
    assert counts(trace)["archive-cut-off"] == 1
    assert len(trace.host) > 100


def test_a_damaged_zip_is_read_up_to_the_fault(tmp_path: Path) -> None:
    packed = bytearray(zipped(("trace.json", TEXT)))
    packed[len(packed) // 2] ^= 0xFF
    trace = read_text(tmp_path, bytes(packed), "trace.zip")
    assert counts(trace)["archive-cut-off"] == 1


NO_TRACES = {
    "empty": (b"", "is empty"),
    "space": (b" \n ", "is no JSON object or list"),
    "text": (b"hello", "it begins with 'hello'"),
    "binary": (bytes(range(128, 200)), "is no JSON object or list"),
    "number": (b"17", "is no JSON object or list"),
    "other JSON": (b'{"name": "x", "version": 1}', "has no 'traceEvents' and none of the keys of a PyTorch trace"),
    "other list": (b"[1, 2, 3]", "without a single event"),
    "empty list": (b"[]", "without a single event"),
    "list of objects": (b'[{"a": 1}]', "without a single event"),
    "empty gzip": (gzip.compress(b""), "is no JSON object or list"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(20), "is a zstd archive"),
    "UTF-16": ('{"traceEvents": []}'.encode("utf-16"), "is UTF-16 text"),
    "pickle": (b"\x80\x04\x95abc", "is a pickle"),
    "zip of two": (zipped(("a.json", TEXT), ("b.json", TEXT)), "a zip archive of 2 files (a.json, b.json)"),
    "zip of none": (zipped(), "a zip archive of 0 files"),
    "cut zip": (zipped(("a.json", TEXT))[:-30], "is a damaged zip archive"),
}


@pytest.mark.parametrize("name", NO_TRACES)
def test_a_file_that_is_no_trace_gets_one_clear_line(tmp_path: Path, name: str) -> None:
    content, said = NO_TRACES[name]
    with pytest.raises(TracelockError) as error:
        read_text(tmp_path, content)
    (problem,) = error.value.problems
    assert said in str(problem)
    assert "\n" not in str(problem)
    assert str(tmp_path / "trace.json") in str(problem)


def test_a_path_that_cannot_be_read_gets_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match="is a folder"):
        read_trace(tmp_path)
    (tmp_path / "trace-0.json").write_bytes(TEXT)
    with pytest.raises(TracelockError, match=r"does not exist \(did you mean 'trace-0.json'\?\)"):
        read_trace(tmp_path / "trace-O.json")
    with pytest.raises(TracelockError, match="does not exist"):
        read_trace(tmp_path / "absent" / "trace.json")


def test_progress_tells_the_bytes_of_the_file(tmp_path: Path) -> None:
    for name, data in (("a.json", TEXT), ("b.json.gz", gzip.compress(TEXT))):
        (tmp_path / name).write_bytes(data)
        said = progress_of(tmp_path / name)
        assert said == sorted(said)
        assert said[-1] == (len(data), len(data))


def progress_of(path: Path) -> list[tuple[int, int]]:
    """Return what is said of the progress of reading a file."""
    said: list[tuple[int, int]] = []
    read_trace(path, lambda done, size: said.append((done, size)))
    return said


def test_a_bare_list_that_is_not_closed_may_have_been_cut(tmp_path: Path) -> None:
    text = json.dumps([op(0), kernel(1)])[:-1]
    for ending in ("", ",", ",\n"):
        trace = read_text(tmp_path, text + ending)
        assert rows_read(trace) == rows_of([op(0), kernel(1)])
        assert counts(trace) == {"cut-off": 1}
