"""All runs together: medians with intervals, ratios to the baseline.

before: run.json and analysis.json of every run
after:  comparison.json, tables/*.csv
"""


rule compare:
    """Compare the variants with the baseline."""
    input:
        plan=f"{BASE}/plan.json",
        runs=lambda wildcards: all_runs("run.json"),
        analyses=lambda wildcards: all_runs("analysis.json"),
        stacks=lambda wildcards: stacks_runs("analysis.json"),
        checks=LAYOUT.environments("check.json"),
        remedies=REMEDIES,
        traces=[] if KEEPS_ALL else [f"{BASE}/traces.json"],
    output:
        comparison=f"{BASE}/comparison.json",
        tables=[
            report(
                table,
                caption="../report/tables.rst",
                category="Tables",
                labels={"table": Path(table).stem},
            )
            for table in TABLES
        ],
    log:
        f"{BASE}/logs/compare.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.plan, parent=True),
        program=shown(SCRIPTS / "compare.py"),
        code=code_digest("study", "compare.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} 2> {log:q}"
