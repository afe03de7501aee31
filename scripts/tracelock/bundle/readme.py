"""The README of an archive: what it is, what it says, and how to repeat it, with tracelock and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracelock.report.answer import headline
from tracelock.study.comparison import Comparison

_TEXT = """# {name}: a measured study of training speed

{description}

## What it found

{answers}

Figures: `results/figures/`; tables: `results/tables/`; the report, one page that needs nothing else:
`results/report.html`.

## Repeat it

With tracelock {version} or later:

    tracelock reproduce THIS.zip --analysis-only   # the same tables and figures from the records, no training
    tracelock reproduce THIS.zip                   # builds the environment, measures again, compares the conclusions

It checks this archive first, shows what code would run, and asks.

Without tracelock:

1. `sha256sum --check checksums.sha256` says whether the archive is whole.
2. The environment of the runs is in `results/envs/<name>/`: `explicit.txt` (exact, with hashes), `environment.yml`,
   `packages.json`; the locks that it was held against are in `environments/`.
{environment}
3. The workload is `{workload}`{code}.
   `results/runs/<environment>/<variant>/spec.json` holds all settings of a variant. A run warms up for
   {warmup} steps, times {steps} steps without a profiler, then records {active} steps with torch.profiler.
4. The times of each run's steps (microseconds) are in `run.json` (`timed.step_us`), the machine's samples in
   `samples.csv`, recorded steps in `trace.json.gz`, which https://ui.perfetto.dev opens.
5. Variants are compared by the duration of the timed part per sample, runs being the unit: the ratio of medians, its
   interval and the test are described in `results/comparison.json` under `method`.

## What is in it

| folder or file | what |
| --- | --- |
| `study/` | the study file and the workload's own code |
| `results/` | plan, environments, runs (records, samples, traces), comparison, tables, figures, report |
| `environments/` | the locks |
| `workflow/` | the Snakemake workflow that made the results |
| `bundle.json` | what is in here, what was left out (with sizes and hashes), what was replaced |
| `ro-crate-metadata.json` | the same for machines: Workflow Run RO-Crate 0.5 |
| `checksums.sha256` | SHA-256 of every file |

Names of people, machines and secrets were replaced before writing: {scrubbed}.
"""


def readme(found: Comparison, document: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """Return the text of README.md."""
    kinds: dict[str, int] = {}
    for row in document["scrubbed"]:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    names = [entry["file"] for entry in document["code"]]
    return _TEXT.format(
        name=found.experiment,
        description=found.description or "(no description)",
        answers="\n".join(f"- {one.environment}: {headline(found, one)}" for one in found.answers) or "- nothing",
        version=document["tracelock"]["version"],
        environment=_environment(found),
        workload=plan["workload"],
        code=f" ({', '.join(f'`{name}`' for name in names)})" if names else ", which comes with tracelock",
        warmup=plan["timing"].get("warmup_steps", "some"),
        steps=plan["timing"].get("steps", "some"),
        active=plan["profiler"].get("active", "some"),
        scrubbed=", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items())) or "nothing was found",
    )


def _environment(found: Comparison) -> str:
    lines = []
    for place in found.environments:
        torch = next((run.torch for run in found.runs if run.environment == place.name), "unknown")
        python = next((run.python for run in found.runs if run.environment == place.name), "unknown")
        lines.append(f"   - {place.name}: Python {python}, torch {torch}; {place.note}")
    lines.append("   conda: `conda create -n again --file explicit.txt`; a venv: `pip install -r explicit.txt`.")
    return "\n".join(lines)
