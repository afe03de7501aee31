"""Each trace becomes figures and findings.

before: run.json and the trace beside it; with conda, the check of the analysis environment
after:  analysis.json in the same folder
"""


rule analyze:
    """Compute every figure of one trace and diagnose it."""
    input:
        run=f"{RUN}/{{repeat}}/run.json",
        check=ancient(ANALYSIS_CHECK),
    output:
        analysis=f"{RUN}/{{repeat}}/analysis.json",
    log:
        f"{BASE}/logs/analyze/{{stage}}/{{environment}}/{{variant}}/{{repeat}}.txt",
    conda:
        ANALYSIS_ENV
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        program=shown(SCRIPTS / "analyze.py"),
        thresholds=json.dumps(PLAN.study.thresholds, sort_keys=True),
        code=code_digest(
            "trace", "analysis", "diagnosis", "study/run_analysis.py", "analyze.py"
        ),
    shell:
        "python3 {params.program:q} --run {input.run:q} --thresholds {params.thresholds:q}"
        " --output {output.analysis:q} 2> {log:q}"
