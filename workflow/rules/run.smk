"""One process a run, never two at once on one device, in the plan's order.

before: the variant's spec.json, the environment's check.json
after:  <stage>/<environment>/<variant>/<repeat>/: run.json, samples.csv, trace.json.gz, log.txt
"""


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
        WORKLOAD_ENV
    threads: workflow.cores or 1
    resources:
        device=1,
        mem_mb=4000,
        runtime=int(PLAN.study.limits.max_duration_s / 60) + 10,
    params:
        folder=subpath(output.run, parent=True),
        program=shown(SCRIPTS / "run_workload.py"),
        variant=variant_digest,
        code=code_digest("runner", "run_workload.py"),
    shell:
        "python3 {params.program:q} --spec {input.spec:q} --check {input.check:q}"
        " --repeat {wildcards.repeat} --output {params.folder:q}"
