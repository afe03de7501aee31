"""A real SLURM on one machine: munge, a controller and nodes with fake GPUs, on loopback, without systemd.

    python tests/slurm/single_host.py up FOLDER      # FOLDER holds keys, logs and state
    python tests/slurm/single_host.py down FOLDER

Needs root and Debian's slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge. The configuration has to be
found at /etc/slurm, because SLURM's steps are started without SLURM_CONF; a configuration of somebody else is left
alone, and nothing is started then.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
ETC = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
NODES = ("gpunode0", "gpunode1")
GPUS = 2
PORT = 17817


def why_not() -> str | None:
    """Return why no SLURM can be brought up here, None where it can."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None and not Path("/usr/sbin", name).exists()]
    if lacking:
        return f"no {', '.join(lacking)} on this machine"
    if os.geteuid() != 0:
        return "SLURM's daemons need root here"
    if any((ETC / name).exists() and not (ETC / name).is_symlink() for name in FILES):
        return f"{ETC} holds a configuration of somebody else"
    return None


@dataclass(frozen=True)
class SingleHost:
    """The daemons, and what a test does to them."""

    folder: Path
    memory_mb: int = 6000
    cpus: int = 4

    def up(self) -> None:
        """Start everything and wait until all nodes are idle."""
        for name in ("log", "run", "state", "spool", "dev"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._munge()
        self._configure()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.wait_for_nodes()

    def down(self) -> None:
        """End every job and every daemon, and take the configuration away."""
        with contextlib.suppress(subprocess.SubprocessError):
            call("scancel", "--user=root", check=False)
        names = [*(f"slurmd.{node}" for node in NODES), "slurmctld", "munged"]
        for name in names:
            self.stop(name)
        for name in FILES:
            if (ETC / name).is_symlink():
                (ETC / name).unlink()

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """End a daemon: ``slurmctld``, ``slurmd.gpunode0``."""
        file = self.folder / "run" / f"{name}.pid"
        if not file.exists():
            return
        pid = int(file.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        _wait_for_end(pid)

    def start_controller(self) -> None:
        """Start the controller with the state that it left."""
        _call("/usr/sbin/slurmctld")

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        (self.folder / "spool" / node).mkdir(exist_ok=True)
        _call("/usr/sbin/slurmd", "-N", node)

    def wait_for_nodes(self, state: str = "idle", seconds: float = 30) -> None:
        """Wait until all nodes are in a state."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            shown = call("sinfo", "-h", "-N", "-o", "%N %t", check=False).split("\n")
            if sum(line.endswith(f" {state}") for line in set(shown)) == len(NODES):
                return
            time.sleep(0.2)
        logs = "\n".join(path.read_text()[-2000:] for path in sorted((self.folder / "log").glob("*.log")))
        raise RuntimeError(f"the nodes did not become {state}:\n{shown}\n{logs}")

    def _munge(self) -> None:
        key = self.folder / "munge.key"
        if not key.exists():
            key.write_bytes(os.urandom(128))
            key.chmod(0o600)
        run, log = self.folder / "run", self.folder / "log"
        options = {
            "key-file": key,
            "socket": run / "munge.sock",
            "pid-file": run / "munged.pid",
            "log-file": log / "munged.log",
            "seed-file": run / "munge.seed",
        }
        _call("/usr/sbin/munged", "--force", *(f"--{name}={path}" for name, path in options.items()))

    def _configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        for number in range(GPUS):
            device = self.folder / "dev" / f"nvidia{number}"
            if not device.exists():
                os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={PORT + 10 + number} CPUs={self.cpus}"
            f" RealMemory={self.memory_mb} Gres=gpu:fake:{GPUS} State=UNKNOWN"
            for number, node in enumerate(NODES)
        )
        gres = "\n".join(
            f"NodeName={node} Name=gpu Type=fake File={self.folder}/dev/nvidia[0-{GPUS - 1}]" for node in NODES
        )
        text = _CONF.format(folder=self.folder, host=host, port=PORT, nodes=nodes)
        for name, content in zip(FILES, (text, gres, ""), strict=True):
            (self.folder / name).write_text(content + "\n")
            ETC.mkdir(exist_ok=True)
            link = ETC / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.folder / name)


def call(*command: str, check: bool = True, seconds: float = 20) -> str:
    """Return what one of SLURM's clients prints; none may hang."""
    done = subprocess.run(command, capture_output=True, text=True, check=check, timeout=seconds)
    return done.stdout.strip()


def _call(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=30)


def _wait_for_end(pid: int, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


_CONF = """
ClusterName=tracelock
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmdPort={port}1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=15
SlurmdTimeout=15
KillWait=5
MinJobAge=600
InactiveLimit=0
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    reason = why_not()
    if reason:
        sys.exit(f"single_host: {reason}")
    getattr(SingleHost(Path(folder).resolve()), what)()
