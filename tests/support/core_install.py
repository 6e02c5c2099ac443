"""What the core promises, run by `nox -s core` with the core's Python in an empty folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

LIMIT_MB = 450
HEAVY = ("pandas", "pyarrow", "control", "cvxpy", "osqp", "sippy_unipi", "networkx")
COMMANDS = """
design arc --N 50 -o arc.json --plot arc.png
design hftrac --network merge --mu 1
design connet --model connet-paper --track delay --limits 0Mbit:95Mbit
design mpcc --flows 4 --rate 1Gbit --bdp 3750 --rtt 34.752us --delayed --table 1:1024
design pacing --mode own-rate --rtt 20ms --bottleneck 100Mbit
simulate --design arc.json --compare fluid,packet
simulate hftrac-testbed --runs 2 --n-jobs 2
export tc arc.json --interfaces eth0 -o router
"""
MISSING = {
    "sweep hftrac-testbed -o sweep.parquet": "pandas",
    "identify connet-link --inputs R --outputs delay,jitter -o model.json": "pandas",
}
"""Commands that need more, and which library they name."""
STATEMENTS = """
import netctrl
design = netctrl.arc(flows=50, rtt_s=0.5, capacity_bit_per_s=10e6)
assert netctrl.margins(design.certificate.paper.loop).stable
try:
    design.to_pandas()
except netctrl.NetctrlError as error:
    assert str(error) == "pandas is not installed: pip install pandas", error
else:
    raise AssertionError("to_pandas needs pandas")
"""


def netctrl(arguments: str) -> subprocess.CompletedProcess[str]:
    """A command line, which is shown."""
    print("netctrl", arguments, flush=True)
    command = [sys.executable, "-P", "-m", "netctrl", *arguments.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def megabytes(folder: Path) -> float:
    """What a folder's files take on the disk [MB], as `du` counts it."""
    blocks = getattr(folder.stat(), "st_blocks", None)
    files = [path.stat() for path in (folder, *folder.rglob("*"))]
    return sum(each.st_size if blocks is None else 512 * each.st_blocks for each in files) / 1e6


def main() -> None:
    """Weigh the installation, run everything, and weigh it again with the bytecode that was made."""
    folder = Path(sysconfig.get_path("purelib"))
    size = megabytes(folder)
    assert [name for name in HEAVY if importlib.util.find_spec(name)] == []
    for arguments in COMMANDS.strip().splitlines():
        ran = netctrl(arguments)
        assert ran.returncode == 0, ran.stderr
    if sys.platform == "linux":
        ran = netctrl("linux apply router/arc.plan.json --dry-run")
        assert ran.returncode == 0, ran.stderr
    for arguments, library in MISSING.items():
        ran = netctrl(arguments)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == f"error: {library} is not installed: pip install {library}\n", ran.stderr
    subprocess.run([sys.executable, "-P", "-c", STATEMENTS], check=True)
    print(f"site-packages: {size:.0f} MB, with the bytecode of what was run {megabytes(folder):.0f} MB")
    assert size < LIMIT_MB, f"the core takes {size:.0f} MB, at most {LIMIT_MB}"


if __name__ == "__main__":
    main()
