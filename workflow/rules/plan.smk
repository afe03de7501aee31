"""The study file becomes a plan.

before: the study file, checked while the workflow was read
after:  plan.json, and for every variant runs/<environment>/<variant>/spec.json
"""


rule plan:
    """Write the plan and the settings of every variant, checked once more."""
    output:
        plan=f"{BASE}/plan.json",
        specs=LAYOUT.specs(),
    log:
        f"{BASE}/logs/plan.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        study=STUDY,
        plan=digest(plan_document(PLAN)),
        environments=" ".join(PLAN.environments),
        gpu="yes" if PLAN.gpu else "no",
        base=subpath(output.plan, parent=True),
        program=shown(SCRIPTS / "plan.py"),
    shell:
        "python3 {params.program:q} --study {params.study:q} --environments {params.environments}"
        " --gpu {params.gpu} --output {params.base:q} 2> {log:q}"
