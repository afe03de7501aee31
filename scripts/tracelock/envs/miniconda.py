"""``tracelock conda install``: a pinned Miniconda for those who have no conda, checked before a byte of it is run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO

from tracelock.envs.clients import output_of
from tracelock.envs.package import split_url
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import file_digest, write_text

URL_VARIABLE = "TRACELOCK_MINICONDA_URL"
_PIECE = 1 << 20
_TIMEOUT_S = 60
# Without Anaconda's channels there is no licence to buy and no prompt about terms in a batch job.
_CONDARC = """channels:
  - conda-forge
default_channels: []
channel_priority: strict
auto_activate_base: false
"""


@dataclass(frozen=True)
class Installer:
    """An installer that is known by its hash.

    Parameters
    ----------
    url
        Where it lies; a mirror serves the same file.
    """

    name: str
    url: str
    sha256: str

    def at(self, url: str | None) -> Installer:
        """Return the same installer from another address: its file, or the folder that holds it."""
        if not url:
            return self
        return Installer(self.name, url if url.endswith(".sh") else f"{url.rstrip('/')}/{self.name}", self.sha256)


MINICONDA = Installer(
    "Miniconda3-py310_26.1.1-1-Linux-x86_64.sh",
    "https://repo.anaconda.com/miniconda/Miniconda3-py310_26.1.1-1-Linux-x86_64.sh",
    "4410410a6343f688bbfd48d80eb23e3125964e254e4c18802679d2e61b06876e",
)


def install(folder: Path, installer: Installer = MINICONDA, say: Callable[[str], None] = print) -> Path:
    """Install conda into `folder` and return its program.

    A download that was cut off is continued, a killed installation is cleared and made again, and a second process
    waits. A folder that something else made is never touched.

    Raises
    ------
    TracelockError
        If the folder cannot take it (exit code 2), or download, hash or installer fail (1): then nothing is left but
        the part that was downloaded.
    """
    folder = folder.expanduser().absolute()
    _check_folder(folder)
    with _alone(folder):
        conda = folder / "bin" / "conda"
        if _marker(folder).exists():
            # Only a run that was killed leaves this: whatever is in the folder is half of ours.
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.exists() and any(folder.iterdir()):
            return _already(folder, conda, say)
        script = _downloaded(folder, installer, say)
        _run_installer(script, folder, say)
        script.unlink()
    return conda


def _check_folder(folder: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        what = f"the pinned Miniconda is for Linux on x86_64, this is {platform.system()} on {platform.machine()}"
        raise TracelockError(Problem("", what, "install Miniforge: https://conda-forge.org/download"))
    if re.search(r"\s", str(folder)) or not str(folder).isascii():
        what = "Miniconda cannot live in a folder with blanks or letters beyond ASCII in its path"
        raise TracelockError(Problem(str(folder), what, "choose another folder; environments may lie anywhere"))
    if folder.exists() and not folder.is_dir():
        raise TracelockError(Problem(str(folder), "is a file", "choose another folder"))


def _already(folder: Path, conda: Path, say: Callable[[str], None]) -> Path:
    version = output_of([str(conda), "--version"]) if conda.is_file() else None
    if version is None:
        raise TracelockError(Problem(str(folder), "is not empty and holds no conda that runs", "choose another folder"))
    say(f"{folder} has {version.strip()} already")
    return conda


def _marker(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.installing")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock beside `folder`, so that two processes do not install into it at once."""
    path = folder.with_name(f".{folder.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab")
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be written: {error.strerror}")) from None
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _downloaded(folder: Path, installer: Installer, say: Callable[[str], None]) -> Path:
    """Return the installer's file, whose hash is right."""
    part = folder.with_name(f".{installer.name}.part")
    say(f"downloading {installer.url}")
    try:
        _download(installer.url, part)
    except (OSError, HTTPException) as error:
        hint = f"check network and proxy, run it again (it continues), or name a mirror in {URL_VARIABLE}"
        raise TracelockError(
            Problem(installer.url, f"cannot be fetched: {_reason(error)}", hint), EXIT_FAILED
        ) from None
    found = file_digest(part)
    if found != installer.sha256:
        part.unlink()
        what = f"is not the pinned installer: sha256 {found}, expected {installer.sha256}"
        hint = "nothing of it was run; try again, or another mirror"
        raise TracelockError(Problem(installer.url, what, hint), EXIT_FAILED)
    return part


def _download(url: str, part: Path) -> None:
    """Fetch `url` into `part`, continuing where a former download stopped if the server can."""
    if split_url(url).scheme not in ("http", "https"):
        raise OSError("expected an http address")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 (checked)
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310 (checked above)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # nothing is missing: the hash tells whether it is the right file
            return
        raise
    with answer, part.open("ab" if answer.status == 206 else "wb") as stream:
        _copy(answer, stream)


def _copy(answer: HTTPResponse, stream: BinaryIO) -> None:
    expected = answer.length
    done = 0
    while piece := answer.read(_PIECE):
        stream.write(piece)
        done += len(piece)
    if expected is not None and done != expected:
        raise OSError(f"the connection ended after {done} of {expected} bytes")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    return str(getattr(error, "reason", None) or error) or type(error).__name__


def _run_installer(script: Path, folder: Path, say: Callable[[str], None]) -> None:
    marker = _marker(folder)
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CONDA", "LD_"))}
    say(f"installing into {folder}")
    marker.touch()
    done = subprocess.run(
        ["bash", str(script), "-b", "-f", "-p", str(folder)],
        capture_output=True,
        text=True,
        env=variables,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    version = output_of([str(folder / "bin" / "conda"), "--version"]) if done.returncode == 0 else None
    if version is None:
        shutil.rmtree(folder, ignore_errors=True)
        marker.unlink()
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        what = f"the installer failed (exit code {done.returncode}): {said}"
        raise TracelockError(Problem(str(folder), what, "is the disk full, or mounted with noexec?"), EXIT_FAILED)
    write_text(folder / ".condarc", _CONDARC)
    marker.unlink()
    say(f"{folder} has {version.strip()}")
