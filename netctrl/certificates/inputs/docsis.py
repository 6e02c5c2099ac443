"""DOCSIS-PIE of a cable modem's service flows, from its configuration as the docsis tool decodes it to text.

A modem runs an AQM for each upstream service flow of best effort or non-real-time polling: DOCSIS-PIE with a latency
target of 10 ms, unless AQM Encodings (24.40) say otherwise. Downstream the CMTS chooses the algorithm.

Sources: CableLabs, MULPIv3.1, Annex C.2.2.7.15 (AQM Encodings) and Annex M; RFC 8034; github.com/rlaager/docsis,
names of settings.
"""

from __future__ import annotations

from dataclasses import replace

from netctrl.certificates.inputs.braces import Block, blocks
from netctrl.certificates.inputs.queue import Input, InstalledQueue, NamedLaw, whole
from netctrl.core.errors import FileError, InvalidValue

_DIRECTIONS = {"UsServiceFlow": "upstream", "DsServiceFlow": "downstream"}
_PIE, _IAQM = 1, 2
_TARGET_MS = 10
_MANAGED = (2, 3)
"""Types of scheduling with an AQM: best effort, and non-real-time polling."""


def read_docsis(given: Input) -> tuple[InstalledQueue, ...]:
    """Laws of all service flows, with their rates.

    Parameters
    ----------
    given : Input
        As `docsis -d modem.cfg` prints it.

    Raises
    ------
    FileError
        No service flow.
    """
    tree = blocks(given)
    flows = [(block, direction) for name, direction in _DIRECTIONS.items() for block in tree.find(name)]
    if not flows:
        raise FileError(given.source, "no UsServiceFlow or DsServiceFlow in it")
    return tuple(_queue(block, direction, number) for number, (block, direction) in enumerate(flows, 1))


def _queue(block: Block, direction: str, number: int) -> InstalledQueue:
    given = {words[-2].lower().removeprefix("sf"): words[-1] for words in block.statements() if len(words) > 2}
    name = given.get("usserviceflowref", given.get("dsserviceflowref", str(number)))
    queue = InstalledQueue(kind="docsis-pie", handle=f"service flow {name}", parent=direction)
    try:
        rate = whole("maxratesustained", given.get("maxratesustained", 0)) * 1000 ** whole(
            "datarateunitsetting", given.get("datarateunitsetting", 0), 3
        )
        queue = replace(queue, capacity_bit_per_s=float(rate) or None)
        algorithm = whole("aqmalgorithm", given.get("aqmalgorithm", 0), _IAQM)
        if whole("aqmdisable", given.get("aqmdisable", 0), 1):
            return replace(queue, reason="SFAQMDisable is 1: it has no queue management")
        if whole("schedulingtype", given.get("schedulingtype", 2)) not in _MANAGED:
            return replace(queue, reason="grants or real-time polling: it has no queue management")
        if algorithm == _IAQM:
            return replace(
                queue, reason="Immediate AQM, a ramp for low-latency flows: of DOCSIS DOCSIS-PIE has a law here"
            )
        if direction == "downstream" and algorithm != _PIE:
            takes = "1, DOCSIS-PIE: downstream the CMTS chooses the algorithm where the file doesn't say it"
            raise InvalidValue("AQMAlgorithm", given.get("aqmalgorithm"), takes)
        target = whole("aqmlatencytarget", given.get("aqmlatencytarget", _TARGET_MS), 255) or _TARGET_MS
    except InvalidValue as error:
        return queue.unread(error)
    said = "aqmlatencytarget" in given
    notes = () if said else ("SFAQMLatencyTarget isn't set: 10 ms, the modem's default, is taken",)
    return replace(queue, law=NamedLaw("docsis-pie", {"target_s": target / 1000.0}), notes=notes)
