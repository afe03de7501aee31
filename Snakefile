include: "workflow/Snakefile"


# Snakemake forgets the default target of an included file; so it is named again here.
rule all:
    """The report of the study, and everything that it rests on."""
    default_target: True
    input:
        rules.study.input,
