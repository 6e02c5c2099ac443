"""Figures of networks: responses of links to disturbances."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from netctrl.core.errors import InvalidValue
from netctrl.model.design.design import HftracDesign
from netctrl.model.law import FirGain, MyopicGain, StaticGain
from netctrl.plotting.maps import draw_map
from netctrl.plotting.style import canvas

_FAINTEST = 1e-6  # part of a unit that is still drawn


def network_figure(design: HftracDesign, *, link: str | None = None) -> Figure:
    """Network with each link's gain on its own backlog, and the response of all links to a disturbance at one link.

    `link` is the id of that link; by default the one to which the others respond most.
    """
    law, names = design.law, design.law.links
    own, others = np.zeros(len(names)), np.zeros(len(names))
    for i in range(len(names)):  # one at a time: all at once need too much memory for many links
        size = np.abs(_reactions(design, i))
        own[i], others[i] = size[i, 0], np.delete(size, i, axis=0).sum()
    if link is None:
        row = int(np.argmax(others))
    elif link in names:
        row = names.index(link)
    else:
        raise InvalidValue("link", link, f"one of {', '.join(names[:20])}")
    figure = canvas(12.0, 5.4, design.summary()[0])
    left, right = figure.subplots(1, 2)
    load = design.certificate.nominal_rate
    draw_map(
        left,
        design.inputs.network,
        dict(zip(names, own, strict=True)),
        {link.id: load.get(link.id, 0.0) / link.capacity for link in design.inputs.network.links},
        scale=Normalize(float(own.min()), float(own.max())),
        title="gain on the own backlog (colour), load (width)",
        bar="gain",
    )
    size = np.abs(_reactions(design, row))
    responding = np.argsort(-size.max(axis=1), kind="stable")[: min(40, int(np.count_nonzero(size.any(axis=1))))]
    scale, colours = LogNorm(_FAINTEST, 1.0), colormaps["magma_r"].with_extremes(under="white", bad="white")
    image = right.imshow(size[responding], aspect="auto", norm=scale, cmap=colours, interpolation="nearest")
    right.set_yticks(range(len(responding)), [names[i] for i in responding], fontsize=7)
    right.set_xlabel("samples after the disturbance" if not isinstance(law, MyopicGain) else "on backlog, on rate")
    right.set_title(f"magnitude of what each link sends for a unit in the buffer of {names[row]}", fontsize=10)
    figure.colorbar(image, ax=right, shrink=0.8)
    return figure


def _reactions(design: HftracDesign, row: int) -> np.ndarray:
    """(N, T) commanded rates of all links after a unit disturbance at t = 0 in the buffer of link `row`."""
    law = design.law
    N = len(law.links)
    if isinstance(law, FirGain):
        columns = law.columns[row]
        answer = np.zeros((N, columns.u.shape[2]))
        answer[columns.links] = columns.u[0]
        return answer
    if isinstance(law, MyopicGain):
        answer = np.zeros((N, 2))
        answer[row] = law.backlog_gain[row], law.rate_gain[row]
        return answer
    if isinstance(law, StaticGain):
        return law.gain[:, [int(np.sum(law.delay + 1)) + row]]
    column = law.columns[row]
    place = int(np.sum(law.delay[column.links] + 1)) + int(np.flatnonzero(column.links == row)[0])
    answer = np.zeros((N, len(column.gains)))
    answer[column.links] = np.array([gain[:, place] for gain in column.gains]).T
    return answer
