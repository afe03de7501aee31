"""What the rules ask about the plan. Nothing here makes a file."""

from os import environ
from shlex import quote

# Without conda the analysis runs in the driver's environment, which is checked for the runs.
ANALYSIS_CHECK = [f"{BASE}/envs/analysis/check.json"] if USE_CONDA else []
# The lock of the environment that tracelock itself runs in, where that is somebody's own: uv.lock, pixi.lock, a
# requirement file with hashes.
OWN_LOCK = str(
    config.get("environment_lock") or environ.get("TRACELOCK_ENVIRONMENT_LOCK") or ""
)
# A wave at most doubles the runs, so eight are more than any study needs.
MOST_WAVES = 8
RUN = f"{BASE}/{{stage}}/{{environment}}/{{variant}}"
MARK = {"run.json": "done", "analysis.json": "analysed"}
REMEDIES = [f"{BASE}/remedies.json"] if PLAN.study.remedies.test else []
# A study that keeps everything needs no job for it.
KEEPS_ALL = (PLAN.study.keep_traces, PLAN.study.max_total_gb) == ("all", None)
TABLES = [
    f"{BASE}/tables/{name}.csv"
    for name in ("runs", "variants", "comparisons", "operators", "findings")
]


def run_priority(wildcards):
    """Return a run's place in its plan as a priority: the scheduler starts the highest first."""
    place = (wildcards.environment, wildcards.variant, int(wildcards.repeat))
    if wildcards.stage == "runs":
        return LAYOUT.priority(*place)
    return priority_in(
        read_json(Path(BASE, wildcards.stage).parent / "plan.json", "plan")["runs"],
        *place,
    )


def variant_digest(wildcards):
    """Return what determines a run's measurement: when it changes, and only then, the run is made again."""
    if wildcards.stage != "runs":
        file = Path(
            BASE, wildcards.stage, wildcards.environment, wildcards.variant, "spec.json"
        )
        return read_json(file, "spec")["digest"]
    return spec(PLAN, PLAN.variant(wildcards.variant), wildcards.environment)["digest"]


def snapshot_arguments(environment):
    """Return the options that say which lock an environment is held against."""
    unlocked = " --allow-unlocked" if PLAN.study.allow_unlocked else ""
    if not USE_CONDA and OWN_LOCK:
        return f"--lock {quote(OWN_LOCK)}{unlocked}"
    if not USE_CONDA:
        return f"--driver {quote(shown(ROOT / 'requirements'))}{unlocked}"
    return f"--lock {quote(shown(find_environment(ROOT, environment).lock))}{unlocked}"


def made(file):
    """Return `file` of every run of the plan, or, on a cluster, what says the same of its batches."""
    if not CLUSTER:
        return LAYOUT.runs(file)
    return [f"{BASE}/batches/{env}/{name}.{MARK[file]}.json" for env, name in BATCHES]


def runs_of_round(number, file):
    """Return `file` of every run of a round (`made` says more); asking for them waits for the round's plan."""
    plan = read_json(Path(checkpoints.propose.get(round=number).output.plan), "plan")
    folder = f"{BASE}/rounds/{number}"
    if CLUSTER:
        environments = dict.fromkeys(run["environment"] for run in plan["runs"])
        return [f"{folder}/batches/{env}.{MARK[file]}.json" for env in environments]
    places = [
        (run["environment"], run["variant"], run["repeat"]) for run in plan["runs"]
    ]
    return [
        f"{folder}/runs/{env}/{variant}/{repeat}/{file}"
        for env, variant, repeat in places
    ]


def runs_of_wave(number, file):
    """Return `file` of every run of a wave of further runs; asking for them waits for the wave's plan."""
    plan = read_json(Path(checkpoints.more.get(wave=number).output[0]), "more")
    places = [
        (run["environment"], run["variant"], run["repeat"]) for run in plan["runs"]
    ]
    return [
        f"{BASE}/runs/{env}/{variant}/{repeat}/{file}"
        for env, variant, repeat in places
    ]


def runs_before_wave(number, file):
    """Return `file` of every run that was planned before a wave."""
    waves = [runs_of_wave(earlier, file) for earlier in range(1, number)]
    return [*LAYOUT.runs(file), *(path for paths in waves for path in paths)]


def all_runs(file):
    """Return `file` of every run of the study itself: those of its plan, and those of all waves."""
    asked = PLAN.study.repeat_disturbed or PLAN.study.precision is not None
    if CLUSTER or not asked:  # a batch's job makes what was planned before it was sent
        return made(file)
    number = 1
    while number <= MOST_WAVES and runs_of_wave(number, file):
        number += 1
    return runs_before_wave(number, file)


def runs_before(number, file):
    """Return `file` of every run that a round builds on."""
    return all_runs(file) if number == 1 else runs_of_round(number - 1, file)


def planned_rounds():
    """Return the numbers of the rounds, the last of which is empty unless the study's limit was reached first."""
    numbers = []
    for number in range(1, PLAN.study.remedies.max_rounds + 1):
        numbers.append(number)
        if not runs_of_round(number, "run.json"):
            break
    return numbers


def stacks_runs(file):
    """Return `file` of the recording with stacks, if one is made; on a cluster none is."""
    if CLUSTER or not PLAN.study.stacks:
        return []
    plan = read_json(Path(checkpoints.stacks.get().output.plan), "plan")
    return [
        f"{BASE}/stacks/runs/{run['environment']}/{run['variant']}/{run['repeat']}/{file}"
        for run in plan["runs"]
    ]


def remedy_runs(file):
    """Return `file` of every run of every round."""
    return [path for number in planned_rounds() for path in runs_of_round(number, file)]
