"""Create the environments of a study with conda, once and first, whoever else shares their folder.

python scripts/prepare_envs.py --conda-prefix /shared/envs -- --config study=config/demo.yaml
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.envs.prepare import DEFAULT_PREFIX, Request, prepare
from tracelock.program import run_program


def main() -> None:
    """Read the command line and create the environments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--conda-prefix",
        type=Path,
        default=DEFAULT_PREFIX,
        metavar="DIR",
        help="folder of the environments, which workflows may share (%(default)s)",
    )
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="for Snakemake, after --")
    given = parser.parse_args()
    prepare(Request(given.conda_prefix, tuple(given.arguments)))


if __name__ == "__main__":
    run_program(main)
