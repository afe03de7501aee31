"""What every environment holds, checked against its lock before the first run in it.

before: the environment, built by Snakemake (with conda) or the driver's own
after:  envs/<environment>/: check.json, environment.yml, explicit.txt, packages.json, machine.json
"""


rule prefix:
    """Say where the environment lies: only a program inside it knows."""
    output:
        f"{BASE}/envs/{{environment}}/prefix.txt",
    log:
        f"{BASE}/logs/prefix/{{environment}}.txt",
    localrule: True
    conda:
        str(ENVS / "{environment}.yaml")
    shell:
        "{PYTHON} -c 'import sys; print(sys.prefix)' > {output:q} 2> {log:q}"


rule environment:
    """Take a snapshot of the environment and hold it against its lock; a difference stops the study."""
    input:
        f"{BASE}/envs/{{environment}}/prefix.txt",
    output:
        check=f"{BASE}/envs/{{environment}}/check.json",
        yaml=f"{BASE}/envs/{{environment}}/environment.yml",
        explicit=f"{BASE}/envs/{{environment}}/explicit.txt",
        packages=f"{BASE}/envs/{{environment}}/packages.json",
        machine=f"{BASE}/envs/{{environment}}/machine.json",
    log:
        f"{BASE}/logs/environment/{{environment}}.txt",
    localrule: True
    conda:
        ANALYSIS_ENV
    params:
        folder=subpath(output.check, parent=True),
        program=str(SCRIPTS / "snapshot_env.py"),
        arguments=lambda wildcards: snapshot_arguments(wildcards.environment),
    shell:
        '{PYTHON} {params.program:q} --environment {wildcards.environment} --prefix "$(cat {input:q})"'
        " {params.arguments} --output {params.folder:q} 2> >(tee {log:q} >&2)"


def snapshot_arguments(environment):
    """Return the options that say which lock an environment is held against."""
    unlocked = " --allow-unlocked" if PLAN.study.allow_unlocked else ""
    if not USE_CONDA:
        return f"--driver {quote(str(ROOT / 'requirements'))}{unlocked}"
    return f"--lock {quote(str(environment_lock(environment)))}{unlocked}"


def environment_lock(environment):
    """Return the lock of an environment: the main one's lies at the root, where people look for it."""
    own = ENVS / f"{environment}.conda-lock.yml"
    return own if own.is_file() else ROOT / "conda-lock.yml"
