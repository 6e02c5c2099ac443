"""Write the networks of data/networks/ again: `python experiments/hftrac/networks.py`.

The first three are those of "A Control-Theoretic Approach to In-Network Congestion Management" (Wu et al.) whose
rates its text gives in full; buffers in Mbit are bytes here (1 Mbit = 125000 bytes). It gives no delays for Figs. 1a
and 1b, and 0.2 ms for Fig. 7a, which is nothing beside its sampling interval: a link between switches has one interval
of 10 ms here, a link from a host none.

- tandem: Fig. 1a, two switches in a row.
- merge: Fig. 1b, two sources that share a third link.
- testbed: Fig. 7a without the link from S3 to Dst, whose 42 Mbit/s can't carry the 57 Mbit/s of both sources, so that
  demands end at S3. Source 2 splits 3 : 1 over S2 -> S3 and S2 -> S1 -> S3.

wan stands in for the production network of Fig. 11: four sites on three continents, buffers of 0.8 Mbit, demands that
deviate by 5 Mbit/s, an interval of 35 ms. Its text gives no more; which cities, how they are linked, at 100 Mbit/s, and
means of 20 Mbit/s between all pairs are ours, and delays are by the formula below.

abilene is the network of Fig. 12a, whose demands the paper took from measurements and doesn't print. 11 nodes and 14
lines, each a link of 100 Mbit/s each way, with 100 kB of buffer (0.8 Mbit, as in Figs. 1b and 11; the paper names none
for Fig. 12a). By formula:

- delay [s] = length of the great circle between the cities [m] / 2e8 m/s, in whole 10 us; length = 2 R asin √h with
  h = sin²(Δlat / 2) + cos lat1 cos lat2 sin²(Δlon / 2) and R = 6371 km;
- mean of the demand from i to j [bit/s] = g m_i m_j for all i ≠ j (gravity), in whole kbit/s, where m is the
  population of the metropolitan area (census of 2020, in millions) and g makes the most loaded link 85 % utilised, as
  in the paper, when each demand takes its shortest path by delay;
- standard deviation of a demand = 0.1 mean.

abilene-bursts is abilene with buffers of 40 kB and deviations as large as the means. Abilene itself loses nothing below
full load under any law.
"""

import json
from itertools import pairwise, permutations
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.routing import routing
from netctrl.model.network import Demand, Link, Network, Node

FOLDER = Path(__file__).resolve().parents[2] / "data" / "networks"
PAPER = "A Control-Theoretic Approach to In-Network Congestion Management (Wu et al.)"
MEGA = 1e6
STEP = 0.01
"""Sampling interval of the paper's testbed [s]."""

EARTH_RADIUS = 6371e3
SPEED = 2e8
CAPACITY, BUFFER = 100 * MEGA, 100e3
UTILIZATION, DEVIATION = 0.85, 0.1
# Name, longitude and latitude in degrees (of the city, public gazetteers), population in millions.
# From one to the next: name, longitude and latitude in degrees.
SITES = {
    "FRA": ("Frankfurt", 8.68, 50.11),
    "IAD": ("Ashburn", -77.49, 39.04),
    "SFO": ("San Francisco", -122.42, 37.77),
    "TYO": ("Tokyo", 139.69, 35.69),
}
CITIES = {
    "STTL": ("Seattle", -122.33, 47.61, 4.0),
    "SNVA": ("Sunnyvale", -122.04, 37.37, 2.0),
    "LOSA": ("Los Angeles", -118.24, 34.05, 13.2),
    "DNVR": ("Denver", -104.98, 39.74, 3.0),
    "KSCY": ("Kansas City", -94.63, 39.11, 2.2),
    "HSTN": ("Houston", -95.36, 29.76, 7.1),
    "CHIN": ("Chicago", -87.65, 41.85, 9.6),
    "IPLS": ("Indianapolis", -86.16, 39.77, 2.1),
    "ATLA": ("Atlanta", -84.39, 33.75, 6.1),
    "WASH": ("Washington", -77.04, 38.90, 6.4),
    "NYCM": ("New York", -74.01, 40.71, 20.1),
}
LINES = (
    ("STTL", "SNVA"),
    ("STTL", "DNVR"),
    ("SNVA", "LOSA"),
    ("SNVA", "DNVR"),
    ("LOSA", "HSTN"),
    ("DNVR", "KSCY"),
    ("KSCY", "HSTN"),
    ("KSCY", "IPLS"),
    ("HSTN", "ATLA"),
    ("ATLA", "IPLS"),
    ("ATLA", "WASH"),
    ("IPLS", "CHIN"),
    ("CHIN", "NYCM"),
    ("NYCM", "WASH"),
)


def link(name: str, source: str, target: str, capacity: float, buffer: float, delay: float = STEP) -> Link:
    """A link of the paper: capacity in Mbit/s, buffer in Mbit."""
    return Link(
        id=name,
        source=source,
        target=target,
        capacity=capacity * MEGA,
        delay=delay,
        buffer=buffer * MEGA / BITS_PER_BYTE,
    )


def demand(
    name: str, source: str, target: str, mean: float, std: float, split: dict[str, float] | None = None
) -> Demand:
    """A demand of the paper: both rates in Mbit/s."""
    return Demand(id=name, source=source, target=target, mean=mean * MEGA, std=std * MEGA, split=split)


def tandem() -> Network:
    links = (link("L1", "S1", "S2", 23, 0.2), link("L2", "S2", "D", 18, 0.2))
    return Network(name="tandem", links=links, demands=(demand("p", "S1", "D", 16, 2.5),))


def merge() -> Network:
    ends = {"L1": ("S1", "S3"), "L2": ("S2", "S3"), "L3": ("S3", "D")}
    return Network(
        name="merge",
        links=tuple(link(name, *pair, 36, 0.8) for name, pair in ends.items()),
        demands=(demand("p1", "S1", "D", 17.5, 4), demand("p2", "S2", "D", 17.5, 4)),
    )


def testbed() -> Network:
    hosts = {"e1": ("H1", "S1"), "e2": ("H2", "S2")}
    switches = {"s13": ("S1", "S3"), "s23": ("S2", "S3"), "s21": ("S2", "S1")}
    split = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0}
    return Network(
        name="testbed",
        links=(
            *(link(name, *pair, 42, 0.3, delay=0.0) for name, pair in hosts.items()),
            *(link(name, *pair, 30, 0.2) for name, pair in switches.items()),
        ),
        demands=(demand("p1", "H1", "S3", 19, 8), demand("p2", "H2", "S3", 38, 8, split)),
    )


def propagation(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Delay of the shortest line between two places, longitude and latitude in degrees [s]."""
    return round(great_circle(one, other) / SPEED, 5)


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Length of the shortest way between two places over the globe [m]."""
    (lon1, lat1), (lon2, lat2) = one, other
    h = (
        sin(radians(lat2 - lat1) / 2) ** 2
        + cos(radians(lat1)) * cos(radians(lat2)) * sin(radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS * asin(sqrt(h))


def both_ways(delays: dict[tuple[str, str], float]) -> tuple[Link, ...]:
    return tuple(
        Link(source=source, target=target, capacity=CAPACITY, delay=delay, buffer=BUFFER)
        for line, delay in delays.items()
        for source, target in (line, line[::-1])
    )


def wan() -> Network:
    delays = {line: propagation(*(SITES[site][1:] for site in line)) for line in pairwise(SITES)}
    return Network(
        name="WAN",
        nodes=tuple(Node(id=site, name=name, pos=(lon, lat)) for site, (name, lon, lat) in SITES.items()),
        links=both_ways(delays),
        demands=tuple(demand(f"{i}=>{j}", i, j, 20, 5) for i, j in permutations(SITES, 2)),
    )


def abilene() -> Network:
    def made(means: dict[tuple[str, str], float]) -> Network:
        demands = tuple(Demand(source=i, target=j, mean=mean, std=DEVIATION * mean) for (i, j), mean in means.items())
        return Network(name="Abilene", nodes=nodes, links=links, demands=demands)

    nodes = tuple(Node(id=city, name=name, pos=(lon, lat)) for city, (name, lon, lat, _) in CITIES.items())
    links = both_ways({line: propagation(*(CITIES[city][1:3] for city in line)) for line in LINES})
    gravity = {(i, j): 1e3 * CITIES[i][3] * CITIES[j][3] for i, j in permutations(CITIES, 2)}  # at g = 1000
    scale = UTILIZATION * CAPACITY / float(routing(made(gravity)).load.max())
    return made({pair: round(scale * mean, -3) for pair, mean in gravity.items()})


def abilene_bursts() -> Network:
    network = abilene()
    return Network(
        name="Abilene with bursts",
        nodes=network.nodes,
        links=tuple(replace(each, buffer=40e3) for each in network.links),
        demands=tuple(replace(each, std=each.mean) for each in network.demands),
    )


def three_in_a_row() -> Network:
    """A tandem of three links of 20 Mbit/s, each with a demand of its own beside the one over all."""
    nodes, names = "abcd", ("first", "second", "third")
    ends = tuple(pairwise(nodes))
    links = tuple(link(name, *end, 20, 0.8, 0.005) for name, end in zip(names, ends, strict=True))
    short = tuple(demand(f"short{k}", *end, 10, 2) for k, end in enumerate(ends, 1))
    return Network(name="three-in-a-row", links=links, demands=(demand("long", "a", "d", 8, 2), *short))


NETWORKS = {
    "three-in-a-row": (three_in_a_row, "ours: the links of the scenario three-links"),
    "tandem": (tandem, f"{PAPER}, Fig. 1a; delays: experiments/hftrac/networks.py"),
    "merge": (merge, f"{PAPER}, Fig. 1b; delays: experiments/hftrac/networks.py"),
    "testbed": (testbed, f"{PAPER}, Fig. 7a without the link S3 -> Dst; delays: experiments/hftrac/networks.py"),
    "wan": (
        wan,
        f"{PAPER}, Fig. 11: four sites on three continents, buffers, deviations. Cities, lines, capacities and means, "
        "which its text doesn't give, are ours: experiments/hftrac/networks.py",
    ),
    "abilene": (
        abilene,
        "Topology: Abilene, backbone of Internet2, about 2004 (public fact). Delays from great circles, demands from a "
        "gravity model over populations of the 2020 census: formulas in experiments/hftrac/networks.py",
    ),
    "abilene-bursts": (
        abilene_bursts,
        "abilene with buffers of 40 kB and deviations as large as the means, ours: experiments/hftrac/networks.py",
    ),
}


def file(name: str) -> bytes:
    """Content of a network's file: `Network.to_json`, its source, and one record a line."""
    build, source = NETWORKS[name]
    content = json.loads(build().to_json())
    content["graph"]["source"] = source
    return ("{\n" + ",\n".join(f'  "{key}": {lines(value)}' for key, value in content.items()) + "\n}\n").encode()


def lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in value) + "\n  ]"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        (FOLDER / f"{name}.json").write_bytes(file(name))
        print(FOLDER / f"{name}.json")


if __name__ == "__main__":
    main()
