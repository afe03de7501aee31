"""On a cluster: a job a batch. Each works through many runs, so that the queue holds jobs by the hundred.

before: plan.json, the variants' spec.json, the environment's check.json
after:  the files of all runs of the batch; batches/<environment>/<batch>.{done,analysed}.json say so
"""

SHARE = "TRACELOCK_SHARED_NODE=1 " if CLUSTER.share == "node" else ""
CODE = code_digest("runner", "run_workload.py", "run_batch.py")


def batch_of(wildcards):
    """Return one of the batches that the plan was cut into."""
    return BATCHES[wildcards.environment, wildcards.batch]


def batch_digest(wildcards):
    """Return what determines the measurements of a batch: when it changes, its job is started again."""
    return digest(
        [
            (
                run.variant,
                run.repeat,
                spec(PLAN, PLAN.variant(run.variant), run.environment)["digest"],
            )
            for run in batch_of(wildcards).runs
        ]
    )


def possible_jobs():
    """Return the comments that jobs of this study can have in the queue: what a killed driver may have left there."""
    found = set()
    for environment, batch in BATCHES:
        found.add(comment("measure_batch", BASE, environment, batch))
        found.add(comment("analyze_batch", BASE, "batches", environment, batch))
    for number in map(str, range(1, PLAN.study.remedies.max_rounds + 1)):
        for environment in PLAN.environments:
            found.add(comment("measure_round", BASE, number, environment))
            found.add(
                comment("analyze_batch", BASE, "rounds", number, "batches", environment)
            )
    return found


rule measure_batch:
    """Time and record every run of a batch on one node, those of all variants in turn."""
    input:
        plan=ancient("{base}/plan.json"),
        check=ancient("{base}/envs/{environment}/check.json"),
    output:
        "{base}/batches/{environment}/{batch}.done.json",
    log:
        "{base}/logs/batches/{environment}/{batch}.txt",
    conda:
        WORKLOAD_ENV
    threads: CLUSTER.cpus
    resources:
        **CLUSTER.resources(PLAN.study.device),
        mem_mb=lambda wildcards, attempt: CLUSTER.mem_mb * attempt,
        runtime=lambda wildcards, attempt: attempt
        * minutes_of(len(batch_of(wildcards).runs), PLAN.study.limits.max_duration_s),
        attempt=lambda wildcards, attempt: attempt,
    params:
        program=shown(SCRIPTS / "run_batch.py"),
        orders=lambda wildcards: batch_of(wildcards).orders,
        runs=batch_digest,
        code=CODE,
        share=SHARE,
    shell:
        "{params.share}python3 {params.program:q} --plan {input.plan:q} --environment {wildcards.environment:q}"
        " --orders {params.orders} --check {input.check:q} --code {params.code} --attempt {resources.attempt}"
        " --output {output:q} 2> >(tee {log:q} >&2)"


rule measure_round:
    """Time and record the runs of one round of remedies in one environment."""
    input:
        plan="{base}/rounds/{round}/plan.json",
        check=ancient("{base}/envs/{environment}/check.json"),
    output:
        "{base}/rounds/{round}/batches/{environment}.done.json",
    log:
        "{base}/logs/rounds/{round}/{environment}.txt",
    conda:
        WORKLOAD_ENV
    threads: CLUSTER.cpus
    resources:
        **CLUSTER.resources(PLAN.study.device),
        mem_mb=lambda wildcards, attempt: CLUSTER.mem_mb * attempt,
        runtime=lambda wildcards, attempt: attempt
        * minutes_of(PLAN.study.remedies.max_runs, PLAN.study.limits.max_duration_s),
        attempt=lambda wildcards, attempt: attempt,
    params:
        program=shown(SCRIPTS / "run_batch.py"),
        code=CODE,
        share=SHARE,
    shell:
        "{params.share}python3 {params.program:q} --plan {input.plan:q} --environment {wildcards.environment:q}"
        " --check {input.check:q} --code {params.code} --attempt {resources.attempt}"
        " --output {output:q} 2> >(tee {log:q} >&2)"


rule analyze_batch:
    """Compute the figures of every trace of a batch and diagnose them."""
    input:
        batch="{base}/{place}.done.json",
        check=ancient(ANALYSIS_CHECK),
    output:
        "{base}/{place}.analysed.json",
    log:
        "{base}/logs/{place}.analysis.txt",
    wildcard_constraints:
        place=r"(rounds/\d+/batches/[^/]+|batches/[^/]+/\d+)",
    conda:
        ANALYSIS_ENV
    threads: 2
    resources:
        **CLUSTER.where,
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=60,
    params:
        runs=lambda wildcards: f"{BASE}/{wildcards.place.rpartition('batches/')[0]}runs",
        program=shown(SCRIPTS / "analyze_batch.py"),
        thresholds=json.dumps(PLAN.study.thresholds, sort_keys=True),
        code=code_digest(
            "trace",
            "analysis",
            "diagnosis",
            "study/run_analysis.py",
            "analyze_batch.py",
        ),
    shell:
        "python3 {params.program:q} --batch {input.batch:q} --runs {params.runs:q}"
        " --thresholds {params.thresholds:q} --output {output:q} 2> {log:q}"
