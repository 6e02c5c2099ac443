"""What a user gets wrong: pyright and mypy find an error on each line that ends in `# wrong`, and on no other."""

import control
import numpy as np

import netctrl
from netctrl import Network, Scenario, identify, simulate
from netctrl.frequency.margins import gain_band
from netctrl.scenario.links import Link

netctrl.arcs(50)  # wrong
netctrl.arc(50, rtt=0.1)  # wrong
netctrl.arc("fifty")  # wrong
netctrl.arc(50, plant="real")  # wrong
arc = netctrl.arc(50)
arc.certificat  # wrong
arc.certificate.sampled.phase_margin  # wrong
name: str = arc.law.alpha_per_packet  # wrong
arc.law.epoch_s + "s"  # wrong

netctrl.hftrac("merge", "10ms", mu=1.0)  # wrong
netctrl.hftrac("merge", 0.01, architecture="global")  # wrong
netctrl.hftrac("merge", 0.01, mu=1.0).certificate.costs  # wrong
netctrl.connet("connet-paper", method="pid")  # wrong
netctrl.connet(arc)  # wrong
netctrl.mpcc(8, 1e9)  # wrong
netctrl.mpcc(8, 1e9, 1e-4).law.windows  # wrong
netctrl.pacing("paper")  # wrong
netctrl.pacing(mode="paper").certificate.least_buffer  # wrong

margins = netctrl.margins(control.tf([2], [1, 3, 3, 1]), delays=0.5)  # wrong
gain_band(2.0)  # wrong
loop = netctrl.DelayLoop(gain=1.0, delay=0.1, integrators=1, leads=(), lags=())
text: str = netctrl.margins(loop).phase_margin_deg  # wrong
u = np.ones(100)
identify(u, u, interval=0.1)  # wrong
identify(u, u, interval_s="100ms")  # wrong
identify(u, u, interval_s=0.1).models  # wrong

simulate(arc, seed=2)  # wrong
simulate(arc, runs="two")  # wrong
simulate(7)  # wrong
simulate(arc).backlog  # wrong
simulate(netctrl.mpcc(8, 1e9, 1e-4)).flow_table()  # wrong
scenario = Scenario(name="x", duration="10s")
simulate(scenario).measure()  # wrong
scenario.durations  # wrong
Link(id="a", source="a", target="b", capacity=1e6, rate=1e6)  # wrong
netctrl.compare(scenario, ("fluid", "packet"), seed=3)  # wrong
netctrl.compare(scenario).row  # wrong
netctrl.sweep("hftrac-testbed", jobs=2)  # wrong
netctrl.sweep(scenario)  # wrong
netctrl.read("merge", kind=Network).link  # wrong
netctrl.read("connet-link", inputs=["R"])  # wrong
netctrl.read(7)  # wrong
