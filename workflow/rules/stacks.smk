"""One recording more: the baseline with Python stacks, where its main finding names no line of the user's code.

before: run.json and analysis.json of every run
after:  stacks/plan.json, of one run or none; the run lies beside it
"""


checkpoint stacks:
    """Plan the recording with stacks; an empty plan where it could name no line."""
    input:
        plan=f"{BASE}/plan.json",
        runs=lambda wildcards: all_runs("run.json"),
        analyses=lambda wildcards: all_runs("analysis.json"),
    output:
        plan=f"{BASE}/stacks/plan.json",
    log:
        f"{BASE}/logs/stacks.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.plan, parent=True),
        program=shown(SCRIPTS / "stacks.py"),
        code=code_digest("diagnosis", "study/with_stacks.py", "stacks.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} 2> {log:q}"
