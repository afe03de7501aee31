"""Traces go where the study says that they need not stay; their analyses stay.

before: run.json and analysis.json of every run
after:  traces.json, what stayed and what went; run.json of a run whose trace went says so and keeps its time
"""


rule traces:
    """Take away what keep_traces and max_total_gb do not keep."""
    input:
        plan=f"{BASE}/plan.json",
        runs=lambda wildcards: all_runs("run.json"),
        analyses=lambda wildcards: all_runs("analysis.json"),
        remedies=REMEDIES,
    output:
        f"{BASE}/traces.json",
    log:
        f"{BASE}/logs/traces.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.plan, parent=True),
        program=shown(SCRIPTS / "keep_traces.py"),
        code=code_digest("study/traces.py", "study/taken.py", "keep_traces.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} 2> {log:q}"
