"""A queue's Design for switches, `netctrl export sonic` and `openconfig`, and as attributes of ns-3's queue disc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netctrl.cli.app import report, say
from netctrl.cli.export.folder import write_folder, write_text
from netctrl.core.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from netctrl.design.queue.ecn_record import EcnDesign
    from netctrl.design.queue.record import QueueDesign
    from netctrl.model.law import QueueLaw

ATTRIBUTES = "attributes.txt"
"""File of defaults for ns-3's ConfigStore."""


def export_profile(design: str, name: str, output: str | None, render: Callable[[dict[str, QueueLaw]], str]) -> int:
    """Write a switch's profile to a file, or print it."""
    found = _read(design)
    title = f"{found.law.name} as the profile {name}"
    return write_text(design, found.verdict, title, output, lambda: render({name: found.law}))


def is_queue_design(path: str | None) -> bool:
    """Whether a file is the Design of a queue; a file that isn't a Design is another command's matter."""
    from netctrl.design.queue.ecn_record import EcnDesign
    from netctrl.design.queue.record import QueueDesign
    from netctrl.model.design.design import read_design

    if path is None or path.endswith(".toml"):
        return False
    return isinstance(read_design(path), QueueDesign | EcnDesign)


def export_attributes(design: str, output: str, json: bool) -> int:
    """Write attributes of ns-3's queue disc into a folder."""
    import msgspec

    from netctrl.ns3.attributes import attribute_defaults, ns3_attributes

    found = _read(design)
    try:
        attributes = ns3_attributes(found.law.name, found.law.parameters)
    except InvalidValue as error:
        raise FileError(design, str(error)) from None
    folder = write_folder(output, {ATTRIBUTES: attribute_defaults(attributes)}, lambda _: True)
    path = folder / ATTRIBUTES
    if json:
        return say(
            msgspec.json.encode({"folder": str(folder), "files": [ATTRIBUTES], "attributes": attributes}).decode()
            + "\n"
        )
    load = f"--ns3::ConfigStore::Mode=Load --ns3::ConfigStore::FileFormat=RawText --ns3::ConfigStore::Filename={path}"
    return say(report(f"{attributes['TypeId']} in {path}", [("certified", found.verdict), ("then", load)]))


def _read(path: str) -> QueueDesign | EcnDesign:
    from netctrl.design.queue.ecn_record import EcnDesign
    from netctrl.design.queue.record import QueueDesign
    from netctrl.model.design.design import read_design

    found = read_design(path)
    if not isinstance(found, QueueDesign | EcnDesign):
        raise FileError(
            path, f"this is a Design of {found.method}; expected one of a queue, as netctrl design wred or ecn makes"
        )
    return found
