"""Installing conda: a small installer on a loopback server, whose hash the test gives."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tracelock.cli import main
from tracelock.envs import miniconda
from tracelock.envs.miniconda import MINICONDA, Installer, install
from tracelock.errors import TracelockError

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the pinned Miniconda is for Linux on x86_64"
)

SCRIPT = (
    b"""#!/bin/bash
# Takes what the real one takes: -b -f -p PREFIX.
prefix="$4"
[ "$1 $2 $3" = "-b -f -p" ] || { echo "unexpected arguments: $*" >&2; exit 2; }
[ -z "$PYTHONPATH$CONDA_PREFIX" ] || { echo "leaked variables" >&2; exit 2; }
echo run >> "$(dirname "$prefix")/runs"
mkdir -p "$prefix/bin"
echo half > "$prefix/half"
if [ -e "$(dirname "$prefix")/slow" ]; then sleep 30; fi
printf '#!/bin/sh\\necho conda 26.1.1\\n' > "$prefix/bin/conda"
chmod +x "$prefix/bin/conda"
rm "$prefix/half"
"""
    + b"# padding\n" * 2000
)


@dataclass
class Server:
    """What it serves, how it misbehaves, and what it was asked for."""

    body: bytes = SCRIPT
    ranges: bool = True
    cut_after: int | None = None
    status: int | None = None
    asked: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def installer(self) -> Installer:
        return Installer("Mini.sh", f"{self.url}/Mini.sh", hashlib.sha256(SCRIPT).hexdigest())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            state.asked.append(f"{self.path} {asked}".strip())
            if state.status:
                self.send_error(state.status)
                return
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and state.ranges else 0
            if start and start >= len(state.body):
                self.send_error(416)
                return
            body = state.body[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.cut_after])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        state.url = f"http://127.0.0.1:{http.server_port}"
        yield state
        http.shutdown()
        thread.join()


def failure(folder: Path, installer: Installer) -> TracelockError:
    with pytest.raises(TracelockError) as found:
        install(folder, installer, say=lambda _: None)
    return found.value


def left(folder: Path) -> list[str]:
    """Return what lies beside the folder, but for the lock file."""
    return sorted(path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock"))


def test_the_pinned_one() -> None:
    assert MINICONDA.url == "https://repo.anaconda.com/miniconda/Miniconda3-py310_26.1.1-1-Linux-x86_64.sh"
    assert MINICONDA.sha256 == "4410410a6343f688bbfd48d80eb23e3125964e254e4c18802679d2e61b06876e"
    assert MINICONDA.at(None) == MINICONDA
    assert MINICONDA.at("http://m/x").url == "http://m/x/Miniconda3-py310_26.1.1-1-Linux-x86_64.sh"
    assert MINICONDA.at("http://m/other.sh").url == "http://m/other.sh"
    assert MINICONDA.at("http://m/x").sha256 == MINICONDA.sha256


def test_installed(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("CONDA_PREFIX", "/somewhere")
    said: list[str] = []
    folder = tmp_path / "new" / "conda"
    program = install(folder, server.installer, said.append)
    assert program == folder / "bin" / "conda"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "conda 26.1.1\n"
    assert "conda-forge" in (folder / ".condarc").read_text()
    assert left(folder) == ["conda", "runs"]
    assert said == [f"downloading {server.url}/Mini.sh", f"installing into {folder}", f"{folder} has conda 26.1.1"]
    install(folder, server.installer, said.append)
    assert said[-1] == f"{folder} has conda 26.1.1 already"
    assert server.asked == ["/Mini.sh"]


def test_a_wrong_hash_is_never_run(server: Server, tmp_path: Path) -> None:
    server.body = SCRIPT.replace(b"half", b"evil")
    error = failure(tmp_path / "conda", server.installer)
    assert error.exit_code == 1
    found = hashlib.sha256(server.body).hexdigest()
    assert str(error) == (
        f"{server.url}/Mini.sh: is not the pinned installer: sha256 {found}, expected {server.installer.sha256} "
        "(nothing of it was run; try again, or another mirror)"
    )
    assert left(tmp_path / "conda") == []
    server.body = SCRIPT
    install(tmp_path / "conda", server.installer, say=lambda _: None)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_was_cut_off_is_continued(server: Server, tmp_path: Path, ranges: bool) -> None:
    folder = tmp_path / "conda"
    server.cut_after, server.ranges = 5000, ranges
    error = failure(folder, server.installer)
    assert "cannot be fetched: the connection ended after 5000 of" in str(error)
    assert error.exit_code == 1
    assert left(folder) == [".Mini.sh.part"]
    server.cut_after = None
    install(folder, server.installer, say=lambda _: None)
    assert server.asked == ["/Mini.sh", "/Mini.sh bytes=5000-"]
    assert left(folder) == ["conda", "runs"]


def test_a_whole_download_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".Mini.sh.part").write_bytes(SCRIPT)
    install(tmp_path / "conda", server.installer, say=lambda _: None)
    assert left(tmp_path / "conda") == ["conda", "runs"]


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_answer_that_is_none(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    assert f"{server.url}/Mini.sh: cannot be fetched: HTTP {status}" in str(
        failure(tmp_path / "conda", server.installer)
    )


def test_nobody_answers(tmp_path: Path) -> None:
    error = failure(tmp_path / "conda", MINICONDA.at("http://127.0.0.1:9/Mini.sh"))
    assert "Connection refused" in str(error)
    assert "TRACELOCK_MINICONDA_URL" in str(error)
    assert "expected an http address" in str(failure(tmp_path / "conda", MINICONDA.at("file:///tmp/Mini.sh")))


def test_an_installer_that_fails_leaves_nothing(server: Server, tmp_path: Path) -> None:
    broken = b'mkdir -p "$4/bin"; echo "disk full" >&2; exit 3\n'
    server.body = broken
    installer = Installer("Mini.sh", server.installer.url, hashlib.sha256(broken).hexdigest())
    error = failure(tmp_path / "conda", installer)
    assert "the installer failed (exit code 3): disk full" in str(error)
    assert left(tmp_path / "conda") == [".Mini.sh.part"]


def test_a_folder_of_somebody_else_is_not_touched(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("x")
    assert "is not empty and holds no conda that runs" in str(failure(folder, server.installer))
    assert (folder / "thesis.tex").read_text() == "x"
    assert server.asked == []


@pytest.mark.parametrize("name", ["my conda", "größe"])
def test_a_path_that_conda_cannot_have(server: Server, tmp_path: Path, name: str) -> None:
    error = failure(tmp_path / name, server.installer)
    assert error.exit_code == 2
    assert "Miniconda cannot live in a folder with blanks or letters beyond ASCII" in str(error)
    assert server.asked == []


def test_another_platform(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniconda.platform, "machine", lambda: "aarch64")
    assert "is for Linux on x86_64, this is Linux on aarch64" in str(failure(tmp_path / "conda", server.installer))


CHILD = """
import sys
from pathlib import Path
from tracelock.envs.miniconda import Installer, install
install(Path(sys.argv[1]), Installer("Mini.sh", sys.argv[2], sys.argv[3]))
"""


def child(server: Server, folder: Path) -> subprocess.Popen[str]:
    scripts = str(Path(miniconda.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), server.installer.url, server.installer.sha256],
        env={**os.environ, "PYTHONPATH": scripts},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_killed_in_the_middle_and_run_again(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "conda"
    (tmp_path / "slow").touch()
    process = child(server, folder)
    deadline = time.monotonic() + 20
    while not (folder / "half").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, 9)
    process.communicate()
    assert (folder / "half").exists()
    (tmp_path / "slow").unlink()
    install(folder, server.installer, say=lambda _: None)
    assert not (folder / "half").exists()
    assert left(folder) == ["conda", "runs"]


def test_two_at_once_install_once(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "conda"
    both = [child(server, folder) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert (tmp_path / "runs").read_text() == "run\n"
    assert sum("already" in text for text in said) == 1


def test_the_command(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The real hash stands whatever the address: a mirror that serves another file is refused."""
    with pytest.raises(SystemExit) as ended:
        main(["conda", "install", str(tmp_path / "conda"), "--url", f"{server.url}/Mini.sh"])
    assert ended.value.code == 1
    assert f"expected {MINICONDA.sha256}" in capsys.readouterr().err
    assert not (tmp_path / "conda").exists()
