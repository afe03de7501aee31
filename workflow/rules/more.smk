"""Runs beside the plan: disturbed ones once more, and others until intervals are as narrow as the study asks.

before: run.json and analysis.json of every run so far
after:  more/<n>.json: the runs of one wave; an empty one ends it
"""


checkpoint more:
    """Plan one wave of further runs."""
    input:
        plan=f"{BASE}/plan.json",
        runs=lambda wildcards: runs_before_wave(int(wildcards.wave), "run.json"),
        checks=LAYOUT.environments("check.json"),
    output:
        f"{BASE}/more/{{wave}}.json",
    log:
        f"{BASE}/logs/more/{{wave}}.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.plan, parent=True),
        program=shown(SCRIPTS / "more.py"),
        wanted=digest([PLAN.study.precision, PLAN.study.max_repeats]),
        code=code_digest("study/more.py", "more.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} --wave {wildcards.wave} 2> {log:q}"
