"""Figures, and the report that shows them.

before: comparison.json, tables/*.csv, all runs
after:  figures/*.{svg,png}, report.html
"""


rule figures:
    """Draw every figure, as SVG and PNG."""
    input:
        comparison=f"{BASE}/comparison.json",
    output:
        report(
            directory(f"{BASE}/figures"),
            patterns=["{name}.svg"],
            caption="../report/figures.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
    log:
        f"{BASE}/logs/figures.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.comparison, parent=True),
        program=shown(SCRIPTS / "figures.py"),
        code=code_digest("report", "figures.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} --output {output:q} 2> {log:q}"


rule report:
    """Write the report: one file, readable offline, the answer first."""
    input:
        comparison=f"{BASE}/comparison.json",
        tables=TABLES,
        figures=f"{BASE}/figures",
        environments=LAYOUT.environments("environment.yml"),
    output:
        report(
            f"{BASE}/report.html",
            caption="../report/answer.rst",
            category="Answer",
            labels={"study": PLAN.study.name, "file": "report.html"},
        ),
    log:
        f"{BASE}/logs/report.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.comparison, parent=True),
        program=shown(SCRIPTS / "report.py"),
        code=code_digest("report", "envs/factor.py", "report.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} --output {output:q} 2> {log:q}"
