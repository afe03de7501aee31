"""Figures, and the report that shows them.

before: comparison.json, tables/*.csv, all runs
after:  figures/*.{svg,png}, report.html
"""


rule figures:
    """Draw every figure, as SVG and PNG."""
    input:
        f"{BASE}/comparison.json",
    output:
        directory(f"{BASE}/figures"),
    params:
        base=BASE,
        program=str(SCRIPTS / "figures.py"),
        code=code_digest("report", "figures.py"),
    log:
        f"{BASE}/logs/figures.txt",
    conda:
        ANALYSIS_ENV
    localrule: True
    shell:
        "{PYTHON} {params.program:q} --results {params.base:q} --output {output:q} 2> {log:q}"


rule report:
    """Write the report: one file, readable offline, the answer first."""
    input:
        comparison=f"{BASE}/comparison.json",
        tables=TABLES,
        figures=f"{BASE}/figures",
        environments=LAYOUT.environments("environment.yml"),
    output:
        f"{BASE}/report.html",
    params:
        base=BASE,
        program=str(SCRIPTS / "report.py"),
        code=code_digest("report", "report.py"),
    log:
        f"{BASE}/logs/report.txt",
    conda:
        ANALYSIS_ENV
    localrule: True
    shell:
        "{PYTHON} {params.program:q} --results {params.base:q} --output {output:q} 2> {log:q}"
