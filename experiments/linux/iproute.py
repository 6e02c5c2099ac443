"""Programs of iproute2 at a node of a testbed."""

import subprocess

from linux.testbed import Testbed


def program(bed: Testbed, node: str, argv: list[str], text: str = "") -> None:
    """Run one at a node, with a text as its input."""
    with bed.inside(node):
        subprocess.run(argv, input=text, text=True, check=True, capture_output=True, timeout=30.0)
