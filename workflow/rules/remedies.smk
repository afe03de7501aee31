"""What the diagnosis proposes is run: rounds of further variants, each measured beside the one it starts from.

before: run.json and analysis.json of every run so far
after:  rounds/<n>/: plan.json, round.json, runs; remedies.json with the verdicts
"""


checkpoint propose:
    """Plan the runs of one round; an empty plan ends the rounds."""
    input:
        plan=f"{BASE}/plan.json",
        runs=lambda wildcards: runs_before(int(wildcards.round), "run.json"),
        analyses=lambda wildcards: runs_before(int(wildcards.round), "analysis.json"),
    output:
        plan=f"{BASE}/rounds/{{round}}/plan.json",
        round=f"{BASE}/rounds/{{round}}/round.json",
    log:
        f"{BASE}/logs/propose/{{round}}.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(input.plan, parent=True),
        program=shown(SCRIPTS / "propose.py"),
        limits=digest(plan_document(PLAN)["remedies"]),
        code=code_digest("diagnosis", "study", "propose.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} --round {wildcards.round} 2> {log:q}"


rule remedies:
    """Say what each remedy brought, and which settings are the best."""
    input:
        rounds=lambda wildcards: [
            f"{BASE}/rounds/{number}/round.json" for number in planned_rounds()
        ],
        runs=lambda wildcards: remedy_runs("run.json"),
        analyses=lambda wildcards: remedy_runs("analysis.json"),
    output:
        f"{BASE}/remedies.json",
    log:
        f"{BASE}/logs/remedies.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        base=subpath(output[0], parent=True),
        program=shown(SCRIPTS / "remedies.py"),
        rounds=lambda wildcards: len(planned_rounds()),
        code=code_digest("study", "remedies.py"),
    shell:
        "python3 {params.program:q} --results {params.base:q} --rounds {params.rounds} --output {output:q} 2> {log:q}"
