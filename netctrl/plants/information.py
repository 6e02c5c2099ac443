"""Information pattern: how fast measurements travel between the controllers of a network's links."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_names, checked_number, checked_word
from netctrl.model.network import Network
from netctrl.model.network_model import InformationPattern

COMMUNICATIONS = ("out-of-band", "in-band")


def information_pattern(
    network: Network, interval_s: float, links: tuple[str, ...], communication: str
) -> InformationPattern:
    """Delays after which each controlled link learns of a disturbance at each other link.

    Messages cross the network's own links, each with its propagation delay in samples.

    Parameters
    ----------
    network : Network
        With its links' delays.
    interval_s : float
        Sampling interval [s]; delays are rounded to it, as in the model.
    links : tuple of str
        Ids of the links that are controlled (`NetworkModel.links`).
    communication : {"out-of-band", "in-band"}
        "out-of-band": messages cross every link in both directions; "in-band": they travel with the data, over the
        controlled links alone and downstream only.

    Returns
    -------
    InformationPattern

    Raises
    ------
    InvalidValue
        Another value of communication, an interval that isn't above 0, or an id that no link of the network has.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.plants.information import information_pattern
    >>> from netctrl.synthesis.localized.coordinated import coordinated
    >>> network = netctrl.read("merge")
    >>> model = netctrl.network_model(network, interval_s=0.01)
    >>> information = information_pattern(network, 0.01, model.links, "out-of-band")
    >>> round(coordinated(model, 0.1, information).cost / 1e13, 3)
    1.469

    References
    ----------
    HFTraC paper, Appendix A.
    """
    checked_kind("network", network, Network)
    checked_word("communication", communication, COMMUNICATIONS)
    checked_names("links", links, "ids of the network's links")
    interval_s = checked_number("interval_s", interval_s, "a sampling interval above 0 in seconds", above=0.0)
    longest = max((link.delay for link in network.links), default=0.0)
    checked_number(
        "interval_s", interval_s, "an interval of at least a billionth of the longest delay", at_least=1e-9 * longest
    )
    place = {node.id: row for row, node in enumerate(network.nodes)}
    controlled = set(links)
    lines = []
    for link in network.links:
        ends, samples = (place[link.source], place[link.target]), int(np.rint(link.delay / interval_s))
        if communication == "out-of-band":
            lines += [(*ends, samples), (*ends[::-1], samples)]
        elif link.id in controlled:
            lines.append((*ends, samples))
    sources = {link.id: place[link.source] for link in network.links}
    unknown = [name for name in links if name not in sources]
    if unknown:
        raise InvalidValue("links", unknown[0], "ids of the network's links, as in NetworkModel.links")
    return InformationPattern.from_lines(np.array([sources[name] for name in links]), lines, len(place))
