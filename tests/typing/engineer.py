"""A control engineer's session: designs of all methods, a model from samples, margins, and scenarios."""

import control
import networkx as nx
import numpy as np
import pandas as pd

import netctrl
from netctrl import Network, NoAdmissibleDesign, Scenario, identify, simulate
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow

# ARC: a gain with its certificate.
arc = netctrl.arc(flows=(50, 80), rtt_s=0.1, capacity_bit_per_s=20e6)  # wrong: rtt_s=0.1 -> rtt_s="100ms"
sampled = arc.certificate.sampled
phase: float | None = sampled.phase_margin_deg  # wrong: _deg -> _degrees
if phase is not None:
    print(f"{phase:.1f} degrees, alpha {arc.law.alpha_per_packet:.3g}, {arc.headline}")
for warning in arc.certificate.warnings:
    print(warning.upper())
arc.save("arc.json")
arc.plot().savefig("arc.png")

# HFTraC: a network of one's own.
graph = nx.DiGraph(demands=[{"source": "a", "target": "b", "mean": 5e6, "std": 1e6}])
graph.add_edge("a", "b", capacity=10e6, delay=0.01, buffer=60_000)
hftrac = netctrl.hftrac(graph, 0.01, mu=1.0, architecture="coordinated")  # wrong: coordinated -> central
cost: float = hftrac.certificate.cost
radius: float = netctrl.hftrac("merge", interval_s=0.01, mu=1.0).certificate.spectral_radius
network: Network = hftrac.inputs.network
names: list[str] = [link.id for link in network.links]

# CONNET: from samples to a model to a law.
u = np.random.default_rng(1).choice([-1.0, 1.0], 500)
y = np.convolve(u, [0.0, 0.5, 0.25])[:500]
found = identify(u, y, interval_s=0.1, order=2, method="cva")  # wrong: "cva" -> "cvo"
frame = pd.DataFrame({"rate": u, "delay": y}, index=pd.date_range("2024-01-01", periods=500, freq="100ms"))
again = identify(frame, inputs=["rate"], outputs=["delay"], held_out=0.3)  # wrong: inputs -> input
poles: np.ndarray = again.poles
connet = netctrl.connet(found.model, track="y1")
tracked: tuple[tuple[float, ...], ...] = connet.inputs.tracked

# MPCC and pacing.
mpcc = netctrl.mpcc(8, 1e9, 100e-6)
flows: int = mpcc.inputs.flows
pacing = netctrl.pacing(mode="own-rate", rtt_s=0.02)
held: float | None = pacing.certificate.least_buffer_bytes

# Margins of any loop.
margins = netctrl.margins(control.tf([2], [1, 3, 3, 1]), delay_s=0.5)  # wrong: delay_s=0.5 -> delay_s="500ms"
stable: bool = margins.stable
least: float = min(margins.gain_margin_db, margins.phase_margin_deg)
loop = netctrl.from_control(control.tf([3], [2, 1, 0]), delay_s=0.1)

# A scenario, run by name, from Python and from a Design.
line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
many = Flow(id="many", path=("line",), rtt="50ms", count=2)
scenario = Scenario(name="two flows", links=(line,), flows=(many,), duration="10s")
duration: float = scenario.duration
result = simulate(scenario, "packet")
title, rows = result.table()
for (quantity, of), value in result.measures().items():
    print(quantity, of, round(value, 3))
busy: pd.DataFrame = simulate("arc-staircase-bulk", design=arc).links_table()
backlog: np.ndarray = simulate(arc).series["backlog"]
lost = simulate(hftrac, runs=3)["loss", "network"]
compared = netctrl.compare(scenario, ("fluid", "packet"), seeds=3)
widths = [row.half_width or 0.0 for row in compared.rows]
table: pd.DataFrame = netctrl.sweep("hftrac-testbed", n_jobs=2)

# Files.
old = netctrl.read("arc.json")
trace = netctrl.read("connet-link", inputs=["R"], outputs=["delay"])
interval: float = trace.interval_s
merge = netctrl.read("merge", kind=Network)
demands: list[str] = [demand.id for demand in merge.demands]

try:
    netctrl.arc(1, 0.001, 1e6)
except NoAdmissibleDesign as error:
    print(error, error.design)
