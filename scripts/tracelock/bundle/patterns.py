"""Where texts of a study may name a person, a machine or a secret: the forms that are looked for.

Forms of tokens are those that their issuers document; everything here is a form, never a list of names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# A folder that holds a person's own: the second group is the name. JSON doubles a backslash, JSON in JSON once more.
HOME: Final = re.compile(
    r"(/(?:export/|nfs/|mnt/c/)?(?:home|Users|users)/|(?<![A-Za-z0-9])[A-Za-z]:\\{1,4}Users\\{1,4}|%2F(?:home|Users)%2F)"
    r"""([^/\\\s"'`:;,<>|()\[\]{}&%$#?*]{1,64})"""
)
# With a country's or a common ending: in Python, `W@self.weight` is a product of matrices.
EMAIL: Final = re.compile(
    r"(?<![\w.+%-])(?!git@)[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}"
    r"\.(?:com|org|net|edu|gov|mil|info|io|ai|dev|eu|[a-z]{2})(?![\w(\[-]|\.\w)"
)
# A host inside an institution: its name ends in what no public name ends in.
PRIVATE_HOST: Final = re.compile(
    r"(?<![\w.-])[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,5}(?:internal|intra|intranet|corp|lan|local|localdomain|home\.arpa)"
    r"(?![\w.-])"
)
# Only where an address is meant: versions of packages have four parts, too.
ADDRESS: Final = re.compile(
    r"((?:://|@|\bhost\"?[=:]\s?\"?))((?:10|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))"
    r"(?:\.\d{1,3}){2,3})(?![\d.])"
)
URL_USER: Final = re.compile(r"""([A-Za-z][A-Za-z0-9+.-]{1,20}://)(?!git@)([^/\s"'@<>]{1,512})(?=@)""")
URL_QUERY: Final = re.compile(
    r"([?&](?:[\w-]{0,32}(?:token|key|secret|password|passwd|signature|credential)|sig|auth|pwd)=)"
    r"""([^&\s"'#<>]{3,2048})""",
    re.IGNORECASE,
)
CHANNEL_TOKEN: Final = re.compile(r"(/t/)([\w-]{8,128})(?=/)")
_NAME = r"\b[A-Z][A-Z0-9_]{0,48}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY(?:_ID)?|PRIVATE_?KEY|CREDENTIALS?)"
VARIABLE: Final = re.compile(rf"""({_NAME}\\?["']?\s?[=:]\s?\\?["']?)([^\s"'\\,;&<>()\[\]{{}}]{{8,4096}})""")
SECRET_NAME: Final = re.compile(rf"{_NAME}$")
TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}|glpat-[\w-]{20,64}|hf_[A-Za-z0-9]{20,64}"
    r"|sk-[A-Za-z0-9_-]{20,255}|xox[abprs]-[A-Za-z0-9-]{10,255}|(?:AKIA|ASIA)[0-9A-Z]{16}|npm_[A-Za-z0-9]{36}"
    r"|pypi-AgE[\w-]{20,512}|AIza[\w-]{35}|eyJ[\w-]{10,4096}\.eyJ[\w-]{10,8192}\.[\w-]{10,4096})(?![A-Za-z0-9_-])"
)
PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----.{16,16384}?-----END [A-Z ]{0,32}PRIVATE KEY-----", re.DOTALL
)
# What stands for many people or none.
GENERIC: Final = frozenset(
    {
        "root", "user", "users", "admin", "ubuntu", "debian", "centos", "fedora", "rocky", "ec2-user", "runner",
        "jovyan", "nobody", "guest", "public", "shared", "test", "default", "home", "local", "localhost", "host",
        "node", "worker", "master", "main", "dev", "data", "cpu", "gpu", "cuda", "login", "server", "vm", "docker",
        "build", "name", "username", "linux", "unix", "conda", "mamba", "python", "torch", "train", "model", "study",
        "run", "runs", "results", "trace", "tracelock", "jenkins", "gitlab"
    }
)  # fmt: skip
DONE: Final = re.compile(r"(?:user|host|mail|secret|address)-\d+")


@dataclass(frozen=True)
class Form:
    """A form whose whole match, or whose second group, is what is replaced."""

    kind: str  # what is said to people
    word: str  # what replaces it: word-1, word-2, …
    pattern: re.Pattern[str]


# The order matters: a secret may hold what looks like a name.
FORMS: Final = (
    Form("private key", "secret", PRIVATE_KEY),
    Form("token in a URL", "secret", URL_USER),
    Form("token in a URL", "secret", URL_QUERY),
    Form("token in a URL", "secret", CHANNEL_TOKEN),
    Form("token", "secret", TOKEN),
    Form("value of a variable", "secret", VARIABLE),
    Form("e-mail address", "mail", EMAIL),
    Form("home folder", "user", HOME),
    Form("host", "host", PRIVATE_HOST),
    Form("network address", "address", ADDRESS),
)
