"""Host, launch queue and streams of a training job, simulated: traces whose true cause and true cost are known.

Nothing here knows the rules of the diagnosis. A job is settings, a network, a machine and habits (`job`); a run of it
is a program of the host (`loop`) that moves clocks of threads and streams forward (`timeline`); its rows are written
as Kineto writes them (`kineto`). What a fault costs is measured by simulating the same job without it.
"""
