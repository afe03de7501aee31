"""What people type: the examples under the help of each command."""

from __future__ import annotations

import typer

EXAMPLES = {
    "analyze": ("tracelock analyze trace.json.gz", "tracelock analyze 'run/*.json.gz' --top 20"),
    "bundle": ("tracelock bundle results/demo -o demo.zip --slim",),
    "clean": ("tracelock clean", "tracelock clean results/demo --yes"),
    "columns": ("tracelock columns trace.json.gz -o columns",),
    "compare": (
        "tracelock compare before.json.gz after.json.gz",
        "tracelock compare results/main results/change --fail-above 5%",
    ),
    "conda install": ("tracelock conda install conda",),
    "cure": ("tracelock cure -- python train.py --lr 0.1",),
    "docs": ("tracelock docs --check",),
    "doctor": ("tracelock doctor --use-conda",),
    "env check": ("tracelock env check",),
    "env diff": ("tracelock env diff old/environment.yml new/environment.yml", "tracelock env diff .venv other/.venv"),
    "env gate": ("tracelock env gate .venv requirements/base.lock",),
    "env lock": ("tracelock env lock torch213",),
    "env render": ("tracelock env render torch213",),
    "env restore": ("tracelock env restore results/demo/envs/torch213 --prefix restored",),
    "env snapshot": ("tracelock env snapshot .venv -o mine.snapshot",),
    "export": ("tracelock export results/demo --to tensorboard",),
    "faults": ("tracelock faults --jobs 2", "tracelock faults --pairs --seeds 0:100"),
    "figures": (
        "tracelock figures results/demo --size column --format pdf",
        "tracelock figures trace.json.gz",
    ),
    "flame": ("tracelock flame trace.json.gz trace.speedscope.json --format speedscope",),
    "init": ("tracelock init mystudy", 'tracelock init --name lr --command "python train.py --lr 0.1"'),
    "memory": ("tracelock memory snapshot.pickle",),
    "profile": ("tracelock profile -- python train.py --lr 0.1", "tracelock profile --stacks -- torchrun train.py"),
    "query": ('tracelock query trace.json.gz "select name, sum(dur) from device group by name order by 2 desc"',),
    "report": ("tracelock report trace.json.gz -o page.html", "tracelock report results/demo"),
    "reproduce": ("tracelock reproduce demo.zip --analysis-only",),
    "slim": ("tracelock slim huge.json.gz small.json.gz --steps 2",),
    "study check": ("tracelock study check config/demo.yaml",),
    "study plan": ("tracelock study plan config/demo.yaml",),
    "study run": ("tracelock study run config/demo.yaml", "tracelock study run config/demo.yaml --use-conda"),
    "upgrade": ("tracelock upgrade results/demo --dry-run",),
    "version": ("tracelock version",),
    "watch": ("tracelock watch -- python train.py",),
}


def add_examples(app: typer.Typer, group: str = "") -> None:
    """Put the examples below the help of every command of `app`, and of its groups."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        if found := EXAMPLES.get(f"{group}{name}"):
            command.epilog = "\n\n".join((f"Example{'s' if len(found) > 1 else ''}:", *found))
    for inner in app.registered_groups:
        if inner.typer_instance is not None:
            add_examples(inner.typer_instance, f"{inner.name or inner.typer_instance.info.name} ")
