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
        WORKLOAD_ENV
    shell:
        "python3 -c 'import sys; print(sys.prefix)' > {output:q} 2> {log:q}"


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
        program=shown(SCRIPTS / "snapshot_env.py"),
        arguments=lambda wildcards: snapshot_arguments(wildcards.environment),
        packages="built by conda" if USE_CONDA else fingerprint(),
    shell:
        'python3 {params.program:q} --environment {wildcards.environment} --prefix "$(cat {input:q})"'
        " {params.arguments} --output {params.folder:q} 2> >(tee {log:q} >&2)"
