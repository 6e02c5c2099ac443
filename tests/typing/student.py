"""A student's session: two flows on a link, other engines, and what comes with netctrl."""

import numpy as np
import pandas as pd

import netctrl
from netctrl.core.names import Registered

line = netctrl.Link(id="line", source="a", target="b", capacity="10Mbit", buffer="60kB")
flows = netctrl.Flow(rtt="50ms", count=2, sender="cubic")  # wrong: "cubic" -> "cubik"
late = netctrl.Flow(rtt="50ms", sender=Registered("lola"), start=(5.0, 5.0))
paced = netctrl.Flow(id="paced", rtt="50ms", sender={"kind": "cap", "rate": "1Mbit"})
scenario = netctrl.Scenario(name="two flows", duration="10s", links=(line,), flows=(flows, late, paced))
result = netctrl.simulate(scenario, "packet")  # wrong: "packet" -> "paket"
used: float = result["utilization", "line"]
backlog: np.ndarray = result.series["backlog"]
frame: pd.DataFrame = result.to_pandas()  # wrong: pandas() -> panda()
by_name = netctrl.simulate("arc-staircase").summary()  # wrong: summary -> sumary
other = netctrl.simulate(scenario, Registered("omnet"))
compared = netctrl.compare(scenario, ("fluid", "packet"))  # wrong: "packet" -> "packt"
table: pd.DataFrame = netctrl.sweep("hftrac-testbed", engine="fluid")  # wrong: "fluid" -> "fluit"
mean: float = netctrl.read("merge").demands[0].mean  # wrong: demands -> demand
staircase: float = netctrl.read("arc-staircase").duration
