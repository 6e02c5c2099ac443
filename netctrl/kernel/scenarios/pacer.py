"""Pacing of a plan's TCP flows by laws: netctrl's pacer, as a program inside the kernel.

The flows are the first process's. It marks their sockets, of which this program has duplicates, as `netctrl pace` has
those of another program.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from netctrl.core.errors import NetctrlError
from netctrl.kernel.plan import LINE, Program
from netctrl.kernel.programs import FOLDER, begin_s, own_program, read_record
from netctrl.linux.pacing.program import borrow_socket, sockets_of
from netctrl.linux.pacing.socket import SocketPacer
from netctrl.linux.pacing.tcp import ESTABLISHED, read_tcp_info
from netctrl.model.law import PacingLaw

INTERVAL_S = 0.001
"""Between looks, as in `netctrl pace`."""
_FIRST_PROCESS = 1
_LISTED_S = 0.1  # all sockets are there from the beginning


class PacerTask(NamedTuple):
    """Task of the program."""

    laws: Mapping[int, PacingLaw]
    """Of each mark."""

    def warm_up(self) -> None:
        """Compile the laws, since what is compiled inside isn't kept."""
        for law in dict.fromkeys(self.laws.values()):
            SocketPacer(law)


def pacer_program(duration_s: float) -> Program:
    """The program, which paces for this time; it is ready before time 0."""
    return own_program("netctrl.kernel.scenarios.pacer", repr(duration_s))


def main(duration_s: float) -> int:
    """The inside: one look at each flow's socket every millisecond."""
    laws = read_record(Path(FOLDER), PacerTask).laws
    pacers = {mark: SocketPacer(law) for mark, law in laws.items()}
    with socket.socket(fileno=LINE) as line:
        due = begin_s(line)
        ends = due + duration_s
        paced = [(connection, pacers[mark]) for mark, connection in _marked(set(laws)).items()]
        while due < ends:
            for connection, pacer in paced:
                info = read_tcp_info(connection)
                if info.state == ESTABLISHED:
                    pacer.step(connection, time.monotonic(), info)
            due += INTERVAL_S
            time.sleep(max(due - time.monotonic(), 0.0))
    return 0


def _marked(marks: set[int]) -> dict[int, socket.socket]:
    """Duplicates of the sockets with these marks."""
    found: dict[int, socket.socket] = {}
    until = time.monotonic() + _LISTED_S
    while len(found) < len(marks):
        for pid, descriptor in sockets_of([_FIRST_PROCESS]):
            one = borrow_socket(pid, descriptor)
            if one is None:
                continue
            mark = one.getsockopt(socket.SOL_SOCKET, socket.SO_MARK)
            if mark in marks and mark not in found:
                found[mark] = one
            else:
                one.close()
        if time.monotonic() > until:
            raise NetctrlError(f"there are {len(found)} of {len(marks)} sockets of paced flows")
        time.sleep(INTERVAL_S)
    return dict(sorted(found.items()))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
