"""Write a study's plan and the settings of every variant.

Runs in the driver's environment: it checks the study with the JSON schema library that Snakemake brings.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.load import load_plan
from tracelock.study.plan import write_plan


def main() -> None:
    """Write plan.json and every spec.json below the output folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the study file")
    parser.add_argument("--environments", nargs="+", help="names of environments in place of the study's own")
    parser.add_argument("--gpu", choices=["yes", "no"], help="whether runs may find a GPU; else this machine tells")
    parser.add_argument("--output", type=Path, required=True, help="folder of the study's results")
    arguments = parser.parse_args()
    environments = tuple(arguments.environments) if arguments.environments else None
    gpu = None if arguments.gpu is None else arguments.gpu == "yes"
    write_plan(load_plan(arguments.study, environments, gpu), arguments.output)


if __name__ == "__main__":
    run_program(main)
