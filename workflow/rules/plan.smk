"""The study file becomes a plan.

before: the study file, checked while the workflow was read
after:  plan.json, and for every variant runs/<environment>/<variant>/spec.json
"""

from tracelock.io import digest, read_json
from tracelock.study.plan import plan_document, spec


rule plan:
    """Write the plan and the settings of every variant, in the driver's environment, which has checked the study."""
    output:
        plan=f"{BASE}/plan.json",
        specs=LAYOUT.specs(),
    log:
        f"{BASE}/logs/plan.txt",
    localrule: True
    params:
        study=STUDY,
        plan=digest(plan_document(PLAN)),
        environments=" ".join(PLAN.environments),
        base=BASE,
        program=str(SCRIPTS / "plan.py"),
    shell:
        "{DRIVER} {params.program:q} --study {params.study:q} --environments {params.environments}"
        " --output {params.base:q} 2> {log:q}"
