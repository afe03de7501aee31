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
        base=BASE,
        program=str(SCRIPTS / "propose.py"),
        limits=digest(plan_document(PLAN)["remedies"]),
        code=code_digest("diagnosis", "study/rounds.py", "propose.py"),
    shell:
        "{PYTHON} {params.program:q} --results {params.base:q} --round {wildcards.round} 2> {log:q}"


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
        base=BASE,
        program=str(SCRIPTS / "remedies.py"),
        rounds=lambda wildcards: len(planned_rounds()),
        code=code_digest("study", "remedies.py"),
    shell:
        "{PYTHON} {params.program:q} --results {params.base:q} --rounds {params.rounds} --output {output:q} 2> {log:q}"


def runs_of_round(number, file):
    """Return `file` of every run of a round; asking for them waits for the round's plan."""
    plan = read_json(Path(checkpoints.propose.get(round=number).output.plan), "plan")
    places = [
        (run["environment"], run["variant"], run["repeat"]) for run in plan["runs"]
    ]
    return [
        f"{BASE}/rounds/{number}/runs/{env}/{variant}/{repeat}/{file}"
        for env, variant, repeat in places
    ]


def runs_before(number, file):
    """Return `file` of every run that a round builds on."""
    return LAYOUT.runs(file) if number == 1 else runs_of_round(number - 1, file)


def planned_rounds():
    """Return the numbers of the rounds, the last of which is empty unless the study's limit was reached first."""
    numbers = []
    for number in range(1, PLAN.study.remedies.max_rounds + 1):
        numbers.append(number)
        if not runs_of_round(number, "run.json"):
            break
    return numbers


def remedy_runs(file):
    """Return `file` of every run of every round."""
    return [path for number in planned_rounds() for path in runs_of_round(number, file)]
