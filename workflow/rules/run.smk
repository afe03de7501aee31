"""One process a run, never two at once on one device, in the plan's order.

before: the variant's spec.json, the environment's check.json
after:  <stage>/<environment>/<variant>/<repeat>/: run.json, samples.csv, trace.json.gz, log.txt
"""

RUN = f"{BASE}/{{stage}}/{{environment}}/{{variant}}"


def run_priority(wildcards):
    """Return a run's place in the plan as a priority: the scheduler starts the highest first."""
    return LAYOUT.priority(
        wildcards.stage, wildcards.environment, wildcards.variant, int(wildcards.repeat)
    )


def variant_digest(wildcards):
    """Return what determines a run's measurement: when it changes, and only then, the run is made again."""
    if wildcards.stage != "runs":
        return read_json(
            Path(
                f"{BASE}/{wildcards.stage}/{wildcards.environment}/{wildcards.variant}/spec.json"
            ),
            "spec",
        )["digest"]
    return spec(PLAN, PLAN.variant(wildcards.variant), wildcards.environment)["digest"]


rule run:
    """Time the workload without the profiler, then record it."""
    input:
        spec=ancient(f"{RUN}/spec.json"),
        check=ancient(f"{BASE}/envs/{{environment}}/check.json"),
    output:
        run=f"{RUN}/{{repeat}}/run.json",
        samples=f"{RUN}/{{repeat}}/samples.csv",
    log:
        f"{RUN}/{{repeat}}/log.txt",
    priority: run_priority
    conda:
        str(ENVS / "{environment}.yaml")
    threads: workflow.cores or 1
    resources:
        device=1,
        mem_mb=4000,
        runtime=int(PLAN.study.limits.max_duration_s / 60) + 10,
    params:
        folder=subpath(output.run, parent=True),
        program=str(SCRIPTS / "run_workload.py"),
        variant=variant_digest,
        code=code_digest("runner", "run_workload.py"),
    shell:
        "{PYTHON} {params.program:q} --spec {input.spec:q}"
        " --repeat {wildcards.repeat} --output {params.folder:q}"
