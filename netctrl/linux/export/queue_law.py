"""Laws of queues that Linux has itself, as arguments of tc(8): PIE, DualPI2 and RED in the steps that they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netctrl.errors import InvalidValue
from netctrl.laws.targets.dualpi2 import dualpi2_sent, dualpi2_shown
from netctrl.laws.targets.pie_law import PIE_STEP
from netctrl.linux.export.shaper import TcExport, batch
from netctrl.model.law import QueueLaw

__all__ = ["queue_on_linux", "tc_arguments"]

_USUAL = {"target_s": 0.015, "tupdate_s": 0.015, "step_s": 0.001, "coupling": 2}


def tc_arguments(name: str, parameters: Mapping[str, Any], bandwidth_bit_per_s: float | None = None) -> tuple[str, ...]:
    """Arguments of tc(8) after `tc qdisc replace dev DEV root`.

    Parameters
    ----------
    name, parameters
        Of a `QueueLaw`.
    bandwidth_bit_per_s : float, optional
        Rate of the link, by which `red` ages the average of an idle queue [bit/s].

    Raises
    ------
    InvalidValue
        A law without a qdisc, or PIE in the real numbers of RFC 8033.
    """
    given = {**_USUAL, **parameters}
    if name == "pie" and given.get("implementation", "linux") == "linux":
        steps = (f"{round(given[gain] / PIE_STEP)}" for gain in ("alpha", "beta"))
        alpha, beta = steps
        more = ("dq_rate_estimator",) if given.get("dq_rate_estimator") else ()
        marks = "ecn" if given.get("ecn") else "noecn"
        return ("pie", *_times(given), "alpha", alpha, "beta", beta, marks, *more)
    if name == "dualpi2":
        gains = ("alpha", f"{given['alpha']:.12g}", "beta", f"{given['beta']:.12g}")
        drop = "drop_enqueue" if given.get("drop_early") else "drop_dequeue"
        step = ("step_thresh", _time(given["step_s"]))
        return ("dualpi2", *_times(given), *gains, "coupling_factor", str(given["coupling"]), *step, drop)
    if name == "red" and not given.get("gentle") and "burst" in given:
        sizes = [text for key in ("limit", "min", "max") for text in (key, str(given[f"{key}_bytes"]))]
        average = ("avpkt", str(given["average_packet"]), "burst", str(given["burst"]))
        rate = () if bandwidth_bit_per_s is None else ("bandwidth", f"{bandwidth_bit_per_s:.0f}bit")
        flags = [flag for flag in ("ecn", "adaptive") if given.get(flag)]
        return ("red", *sizes, *average, "probability", f"{given['probability']:.10g}", *rate, *flags)
    raise InvalidValue("law", name, "a law of Linux: pie in sixteenths of 1/s, dualpi2, or red")


def queue_on_linux(law: QueueLaw, interface: str, bandwidth_bit_per_s: float | None = None) -> TcExport:
    """Batch file that makes a law the queue of an interface.

    Parameters
    ----------
    law : QueueLaw
    interface : str
    bandwidth_bit_per_s : float, optional
        Rate of the link [bit/s], for RED.

    Raises
    ------
    InvalidValue
        An invalid name, or a law without a qdisc.
    """
    arguments = tc_arguments(law.name, law.parameters, bandwidth_bit_per_s)
    line = ("qdisc", "replace", "dev", interface, "root", *arguments)
    notes = ["the queue is where the certificate's capacity is: below a shaper, or at the interface's own rate"]
    if law.name == "dualpi2":
        shown = (
            f"{name} {dualpi2_shown(dualpi2_sent(float(law.parameters[name]))) / 256.0:f}" for name in ("alpha", "beta")
        )
        notes.append(f"tc shows {' and '.join(shown)} afterwards: the kernel rounds down when it stores and reports")
    return TcExport({"queue.tc": batch((line,), f"{law.name}, certified by netctrl")}, (), tuple(notes))


def _times(given: Mapping[str, Any]) -> tuple[str, ...]:
    return ("target", _time(given["target_s"]), "tupdate", _time(given["tupdate_s"]))


def _time(seconds: float) -> str:
    micro = round(seconds * 1e6)
    return f"{micro // 1000}ms" if micro % 1000 == 0 else f"{micro}us"
