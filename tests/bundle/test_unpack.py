"""Archives of strangers: nothing but plain files below the folder, whole and unchanged, and never without bound."""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tracelock.bundle import unpack as module
from tracelock.bundle.unpack import name_fault, unpack
from tracelock.errors import TracelockError


def archive(path: Path, files: dict[str, bytes], sums: dict[str, bytes] | None = None) -> Path:
    listed = files if sums is None else sums
    text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in listed.items())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in {**files, "checksums.sha256": text.encode()}.items():
            opened.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def refused(path: Path, tmp_path: Path) -> str:
    before = outside(tmp_path)
    with pytest.raises(TracelockError) as caught:
        unpack(path, tmp_path / "inside" / "deep")
    assert outside(tmp_path) == before
    return str(caught.value)


def outside(folder: Path) -> set[str]:
    inside = folder / "inside"
    return {str(path) for path in folder.rglob("*") if inside not in (path, *path.parents)}


def test_a_sound_archive_comes_out_as_it_went_in(tmp_path: Path) -> None:
    files = {"a.txt": b"1", "b/c=1,d.json": b"2" * 10_000, "é/ü": b""}
    names = unpack(archive(tmp_path / "a.zip", files), tmp_path / "out")
    assert set(names) == {*files, "checksums.sha256"}
    assert {name: (tmp_path / "out" / name).read_bytes() for name in files} == files


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "a/../../x", "/etc/x", "//x", "a//b", "./a", "C:/x", "c:x", "..\\x", "a\\..\\..\\x", "a/.", "a/.."),
        *(
            "a\nb",
            "a\x1b[2Jb",
            "a\u202egnp.exe",
            "con",
            "a/NUL.txt",
            "com1",
            "a.",
            "a ",
            " a",
            "x" * 300,
            "/".join("a" * 40),
        ),
    ],
)
def test_names_that_lead_elsewhere_or_mean_something_else_are_refused(name: str, tmp_path: Path) -> None:
    assert "holds" in refused(archive(tmp_path / "a.zip", {name: b"x"}), tmp_path)


def test_a_name_that_is_cut_at_a_nul_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"good-name": b"x"})
    path.write_bytes(path.read_bytes().replace(b"good-name", b"good\0name"))
    refused(path, tmp_path)


@pytest.mark.parametrize("names", [("a.txt", "A.txt"), ("é", "e\u0301"), ("a", "A/b"), ("straße", "STRASSE")])
def test_names_that_one_file_system_takes_for_the_same_are_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    text = refused(archive(tmp_path / "a.zip", dict.fromkeys(names, b"x")), tmp_path)
    assert "do not differ by case" in text or "as a file and as a folder" in text


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_refused(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as opened:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (kind | 0o777) << 16
        opened.writestr(entry, "/etc/passwd")
    assert "no plain file" in refused(path, tmp_path)


def test_a_bomb_is_refused_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FREE_BYTES", 1 << 20)
    path = archive(tmp_path / "a.zip", {"zeros": bytes(8 << 20)})
    assert "would grow" in refused(path, tmp_path)
    assert not (tmp_path / "inside").exists()


def test_a_size_that_is_a_lie_ends_the_unpacking(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"zeros": bytes(0x3FEDCB)})
    true, false = struct.pack("<L", 0x3FEDCB), struct.pack("<L", 4096)
    assert path.read_bytes().count(true) == 2
    path.write_bytes(path.read_bytes().replace(true, false))
    refused(path, tmp_path)
    assert sum(file.stat().st_size for file in (tmp_path / "inside").rglob("*") if file.is_file()) <= 4096


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 10)
    assert "at most 10" in refused(archive(tmp_path / "a.zip", {str(n): b"" for n in range(20)}), tmp_path)


@pytest.mark.parametrize(
    ("files", "sums", "words"),
    [
        ({"a": b"1"}, {"a": b"2"}, "changed since it was packed"),
        ({"a": b"1"}, {"a": b"1", "b": b"2"}, "lacks b"),
        ({"a": b"1", "b": b"2"}, {"a": b"1"}, "do not name"),
    ],
)
def test_what_is_not_as_it_was_packed_is_named(files, sums, words: str, tmp_path: Path) -> None:
    assert words in refused(archive(tmp_path / "a.zip", files, sums), tmp_path)


def test_other_files_are_no_archive(tmp_path: Path) -> None:
    for number, data in enumerate((b"", b"PK\x05\x06" + bytes(18), b"not a zip", b"\x1f\x8b" + bytes(100))):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(data)
        assert refused(path, tmp_path)


_GOOD = io.BytesIO()
with zipfile.ZipFile(_GOOD, "w", zipfile.ZIP_DEFLATED) as _opened:
    _opened.writestr("a/b.json", b'{"a": 1}' * 50)
    _opened.writestr("c", b"c")
    _opened.writestr("checksums.sha256", b"")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, len(_GOOD.getvalue()) - 1), st.integers(0, 255)), max_size=6))
@example(changes=[(_GOOD.getvalue().rindex(b"c" + b"PK"), 0)])  # a name that is cut to nothing by a NUL
def test_a_damaged_archive_is_refused_in_a_line_and_writes_nothing_elsewhere(changes, tmp_path: Path) -> None:
    data = bytearray(_GOOD.getvalue())
    for place, value in changes:
        data[place] = value
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    target = tmp_path / "inside" / hashlib.sha256(data).hexdigest()[:16]
    before = outside(tmp_path)
    with pytest.raises(TracelockError):
        unpack(path, target)
    assert outside(tmp_path) == before


@given(name=st.text(min_size=1, max_size=40))
def test_a_name_that_is_taken_stays_below_its_folder(name: str) -> None:
    base = Path("/base/of/it")
    if not name_fault(name):
        path = Path(base, name)
        assert path.parts[: len(base.parts)] == base.parts
        assert ".." not in path.parts
        assert path != base
