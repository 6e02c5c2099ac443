"""One family of networks of any size, and what synthesis on it takes.

`python pods.py COMMUNICATION REACH` takes 50,000 states in two threads, and says as JSON how long and how much memory.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rows import peak_gb

from netctrl.model.network import Demand, Link, Network
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.plants.information import information_pattern
from netctrl.plants.linearize import network_model
from netctrl.synthesis.localized.localized import LocalizedSynthesis, localized

TAU = 0.01
MU = 1.0
LINKS = 16  # of a pod
LARGE = 790  # pods; 64 states each, on average


def pods(count: int) -> Network:
    """Hosts -> access -> core -> exits of this pod and of the next: half of the demands go to each, and all pods hang
    together as a ring."""
    random = np.random.default_rng(0)
    links, demands = [], []
    for pod in range(count):
        after = (pod + 1) % count
        pairs = [(f"host{pod}.{i}", f"access{pod}.{i // 2}") for i in range(8)]
        pairs += [(f"access{pod}.{i}", f"core{pod}") for i in range(4)]
        pairs += [(f"core{pod}", f"in{pod}"), (f"core{pod}", f"in{after}")]
        pairs += [(f"in{pod}", f"out{pod}"), (f"out{pod}", f"end{pod}")]
        delays = TAU * random.integers(1, 4, LINKS)
        links += [Link(source=a, target=b, capacity="1Gbit", delay=n) for (a, b), n in zip(pairs, delays, strict=True)]
        ends = [after if i % 2 else pod for i in range(8)]
        means = random.uniform(1e6, 2e6, 8)
        demands += [
            Demand(id=f"{pod}.{i}", source=f"host{pod}.{i}", target=f"end{end}", mean=mean, std=2e5)
            for i, (end, mean) in enumerate(zip(ends, means, strict=True))
        ]
    return Network(links=tuple(links), demands=tuple(demands))


class Plant(NamedTuple):
    """What a synthesis is given."""

    model: NetworkModel
    information: InformationPattern
    communication: str
    reach: int

    @property
    def name(self) -> str:
        return f"{self.model.n_links} links, {way(self.communication, self.reach)}"

    def synthesis(self, horizon: int | None = None, n_jobs: int = 1) -> LocalizedSynthesis:
        return localized(self.model, MU, self.information, horizon=horizon, reach=self.reach, n_jobs=n_jobs)


def plant(network: Network, communication: str, reach: int) -> Plant:
    model = network_model(network, TAU)
    return Plant(model, information_pattern(network, TAU, model.links, communication), communication, reach)


def way(communication: str, reach: int) -> str:
    return "in band" if communication == "in-band" else f"out of band, reach {reach}"


class Took(NamedTuple):
    """Seconds from the network: its model and who hears of what, and the synthesis to the default tolerance."""

    model_s: float
    synthesis_s: float
    states: int
    responses_gb: float
    """The law that comes out."""


def timed(network: Network, communication: str, reach: int, n_jobs: int, clock: Callable[[], float]) -> Took:
    start = clock()
    ready = plant(network, communication, reach)
    middle = clock()
    found = ready.synthesis(n_jobs=n_jobs)
    end = clock()
    size = {id(part.base): part.nbytes for column in found.law.columns for part in (column.u, column.b)}
    return Took(middle - start, end - middle, ready.model.n_states, sum(size.values()) / 1e9)


if __name__ == "__main__":
    took = timed(pods(LARGE), sys.argv[1], int(sys.argv[2]), 2, time.perf_counter)
    print(json.dumps({**took._asdict(), "processor_s": time.process_time(), "peak_gb": peak_gb()}))
