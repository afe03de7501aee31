"""``tracelock flame``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracelock.errors import Problem, TracelockError, nearest

FORMATS = ("collapsed", "speedscope")
OF = ("host", "device", "python")
Source = Annotated[Path, typer.Argument(metavar="FILE", help="A trace: .json, .json.gz, .zip; - reads standard input.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="What to write.")]
FormatOption = Annotated[str, typer.Option("--format", help="collapsed (flamegraph.pl, inferno) or speedscope.")]
OfOption = Annotated[str, typer.Option("--of", help="host or device time of operators, or python frames.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def flame(source: Source, target: Target, form: FormatOption = "speedscope", of: OfOption = "host") -> None:
        """Write the calls of a trace, added up by path, for speedscope or for tools that read collapsed stacks."""
        for option, word, allowed in (("--format", form, FORMATS), ("--of", of, OF)):
            if word not in allowed:
                what = f"'{word}' is none of {', '.join(allowed)}"
                raise TracelockError(Problem(option, what, nearest(word, allowed)))
        from tracelock.analysis.prepared import prepare
        from tracelock.cli._given import given_file
        from tracelock.cli._progress import reading
        from tracelock.io import write_text
        from tracelock.report.trace.stacks import collapsed, speedscope
        from tracelock.trace import read_trace

        with given_file(source) as (file, name), reading(Path(name).name) as progress:
            known = prepare(read_trace(file, progress))
        text = collapsed(known, of) if form == "collapsed" else speedscope(known, of, Path(name).name)
        write_text(target, text)
        print(target)
