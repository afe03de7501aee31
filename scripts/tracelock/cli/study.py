"""``tracelock study``: check, plan and run a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, such as config/demo.yaml.")]


def register(app: typer.Typer) -> None:
    """Add the command group to `app`."""
    group = typer.Typer(no_args_is_help=True, help="Check, plan and run a study.")
    app.add_typer(group, name="study")

    @group.command()
    def check(study: StudyFile) -> None:
        """Say everything that is wrong with a study file, or that nothing is."""
        from tracelock.study.load import load_plan

        plan = load_plan(study)
        print(f"{study}: {len(plan.variants)} variants, {len(plan.runs)} runs: nothing wrong")

    @group.command()
    def plan(study: StudyFile) -> None:
        """Show what a study would measure."""
        from tracelock.study.load import load_plan
        from tracelock.study.show import show_plan

        show_plan(load_plan(study))

    @group.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def run(
        context: typer.Context,
        study: StudyFile,
        results: Annotated[str, typer.Option(help="Folder of all results.")] = "results",
        profile: Annotated[Path | None, typer.Option(help="Snakemake profile; without it the local one.")] = None,
        slurm: Annotated[bool, typer.Option("--slurm", help="Let SLURM run it: a job a batch of runs.")] = False,
    ) -> None:
        """Run a study through Snakemake; further options are Snakemake's (--use-conda, --cores, ...)."""
        from rich.console import Console

        from tracelock.cli._quiet import quiet
        from tracelock.report.summary import print_summary
        from tracelock.runner.process import Stopped, stoppable
        from tracelock.study.drive import RESUME, run_study
        from tracelock.study.place import ROOT

        console = Console(highlight=False, soft_wrap=True, quiet=quiet())
        if slurm and profile is None:
            profile = ROOT / "workflow" / "profiles" / "slurm"
        try:
            with stoppable():  # from the first moment on
                outcome = run_study(study, results, profile, context.args, console)
        except Stopped as stopped:
            console.print(f"{stopped}; finished runs are kept. To go on: {RESUME}", markup=False)
            raise typer.Exit(128 + stopped.number) from None
        if (outcome.folder / "comparison.json").is_file():
            print_summary(outcome.folder, Console(highlight=False, soft_wrap=True), brief=quiet())
        raise typer.Exit(outcome.exit_code)
