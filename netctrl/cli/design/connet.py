"""`netctrl design connet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation
from netctrl.cli.cases import ModelName
from netctrl.cli.design.common import Wanted, deliver
from netctrl.cli.options import given, kind, option
from netctrl.core.errors import InvalidValue
from netctrl.core.units import parse_count, parse_range, parse_rate, unit_scale

if TYPE_CHECKING:
    from netctrl.model.design.design import ConnetDesign
    from netctrl.model.identified import IdentifiedModel

TRACK_TAKES = "an output, as in delay, or weights of outputs, as in delay=1,jitter=0.5; up to one for each input"
LIMITS_TAKES = "range of the input, as in 0Mbit:95Mbit, or numbers in the model's unit"
REFERENCE_TAKES = "values of all outputs, as in delay=0.46,jitter=0.043; semicolons separate several"
_WEIGHT = kind("WEIGHT", parse_count, "a number above 0")


def connet(
    wanted: Wanted | None = None,
    *,
    model: Annotated[
        ModelName,
        option(
            "FILE", "model file of netctrl identify, or the name of one that comes with netctrl, as in connet-paper"
        ),
    ],
    method: Annotated[
        str | None, option("METHOD", "lqi (integral action), or paper (the published LQG)", default="lqi")
    ] = None,
    track: Annotated[str | None, option("WHAT", TRACK_TAKES)] = None,
    limits: Annotated[str | None, option("RANGE", f"{LIMITS_TAKES}; by default the range in the model file")] = None,
    input_weight: Annotated[float | None, _WEIGHT("smaller is faster: 0.01 (lqi), 2.3e-5 (paper)")] = None,
    disk_margin: Annotated[
        float | None, _WEIGHT("least disk margin, also at the worst slope of a model's curve, in place of a weight")
    ] = None,
    references: Annotated[
        str | None, option("VALUES", f"reference to certify: {REFERENCE_TAKES}", "--reference")
    ] = None,
) -> int:
    """CONNET sets the rate of other traffic so that premium packets get the requested delay or jitter.

    Examples
    --------
    netctrl design connet --model connet-paper
    netctrl design connet --model connet-paper --track jitter -o connet.json --plot connet.png
    """
    asked = given(locals(), "wanted", "model")
    asked["accept"] = (wanted or Wanted()).accept

    def made() -> ConnetDesign:
        import netctrl
        from netctrl.model.datasets import model_path
        from netctrl.model.identified import read_model

        path = model_path(model)
        found = read_model(path)
        if track is not None:
            asked["track"] = _track(track, found)
        if limits is not None:
            asked["limits"] = _input_limits(limits, found)
        if references is not None:
            asked["references"] = [_values("references", each) for each in references.split(";")]
        return netctrl.connet(found, **asked, argv=invocation(), inputs=[path])

    return deliver(wanted, made)


def _track(text: str, model: IdentifiedModel) -> list[Any]:
    """Names of outputs, or one combination of outputs as "name=weight" pairs."""
    parts = [part.strip() for part in text.split(",")]
    if all("=" in part for part in parts):
        weights = _values("track", text)
        if not set(weights) <= set(model.outputs):
            raise InvalidValue("track", text, f"{TRACK_TAKES}; there are {', '.join(model.outputs)}")
        return [weights.get(name, 0.0) for name in model.outputs]
    try:
        return [float(part) for part in parts]
    except ValueError:
        return parts


def _values(argument: str, text: str) -> dict[str, float]:
    pairs = [part.split("=") for part in text.split(",")]
    try:
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise InvalidValue(argument, text, REFERENCE_TAKES if argument == "references" else TRACK_TAKES) from None


def _input_limits(text: str, model: IdentifiedModel) -> list[tuple[float, float]]:
    """One range for each input; rates in the model's unit."""
    parts = text.split(",")
    if len(parts) != len(model.inputs):
        raise InvalidValue("limits", text, f"{LIMITS_TAKES}, for each of {', '.join(model.inputs)}")
    return [_input_range(part, unit) for part, unit in zip(parts, model.input_units, strict=True)]


def _input_range(text: str, unit: str) -> tuple[float, float]:
    scale = unit_scale(unit)

    def end(part: str) -> float:
        try:
            return float(part)
        except ValueError:
            # Without a unit in the model file: Mbit/s, as in the paper.
            return parse_rate(part, zero=True) / (1e6 if scale is None else scale)

    try:
        return parse_range(text, end)
    except ValueError:
        raise InvalidValue("limits", text, LIMITS_TAKES) from None
