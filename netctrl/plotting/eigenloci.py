"""Eigenvalues of a network's loop on the boundary of stability, and the point −1."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.plotting.style import ACCENT, INK, ShownFigure

__all__ = ["eigenloci_figure"]

_COLOURS = (ACCENT, "#b45f06", "#38761d", "#741b47", "#0b5394", "#7f6000")
_NEAR, _FAR = 1.4, 1.4
"""Half width of the picture around the origin, and by how much it reaches beyond the furthest crossing."""


def eigenloci_figure(found: Any, loci: Any) -> ShownFigure:
    """Eigenvalues of the return ratio L over all angles, which must not encircle −1.

    Parameters
    ----------
    found : NetworkCertificate
    loci : Eigenloci
        Its eigenvalues.
    """
    figure = ShownFigure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.subplots()
    crossings = np.array([each.real for each in loci.crossings])
    reach = max(_NEAR, _FAR * float(-crossings.min(initial=0.0)))
    for k, curve in enumerate(loci.curves.T):
        colour = _COLOURS[k % len(_COLOURS)]
        axes.plot(curve.real, curve.imag, color=colour, lw=1.6, label=f"eigenvalue {k + 1}")
        axes.plot(curve.real, -curve.imag, color=colour, lw=0.8, ls="dashed")
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color="#999999", lw=0.6)
    if len(crossings):
        axes.plot(crossings, np.zeros(len(crossings)), "o", color="white", mec=INK, mew=1.4, ms=6, label="crossings")
    axes.plot([-1.0], [0.0], "+", color="#cc0000", ms=14, mew=2.2, label="−1")
    for level in ("h", "v"):
        (axes.axhline if level == "h" else axes.axvline)(0.0, color="#dddddd", lw=0.6, zorder=0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    axes.set_title(f"{found.verdict}\ndashed: negative frequencies", fontsize=10, wrap=True)
    axes.legend(loc="lower right", fontsize=8)
    return figure
