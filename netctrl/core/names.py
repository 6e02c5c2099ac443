"""Names that arguments take, as type checkers and shells know them; tests/typing compares them with the registries."""

from __future__ import annotations

from typing import Literal, NewType

Registered = NewType("Registered", str)
"""Name of an engine, a law or a sender of another package, as in `Registered("blue")`: checkers can't know it."""

EngineName = Literal["fluid", "packet", "ns3", "kernel"]
CheckName = Literal["fluid", "packet", "kernel"]
EvaluationEngine = Literal["packet", "ns3", "kernel"]
SenderName = Literal[
    "reno", "cubic", "htcp", "dctcp", "vegas", "prague", "ledbat++", "bbr", "bbr3", "copa", "own-rate", "paced",
    "fixed", "mpcc", "hpcc", "timely", "dcqcn",
]  # fmt: skip
LoopSender = Literal[
    "reno", "creno", "cubic", "dctcp", "linux-reno", "linux-creno", "linux-reno-noecn", "linux-creno-noecn", "rfc-reno",
    "rfc-creno",
]  # fmt: skip
CertifiedName = Literal[
    "pie", "dualpi2", "pi2", "fq_pie", "docsis-pie", "red", "wred", "codel", "fq_codel", "cake", "dctcp", "dcqcn",
    "hpcc", "arc", "fast-arc", "pi", "avq", "sfc", "threshold",
]  # fmt: skip
EvaluatedName = Literal[
    SenderName, "cap", "arc", "fast-arc", "pi", "avq", "sfc", "red", "pie", "codel", "threshold", "pi2",
    "docsis-pie", "dualpi2", "fq_codel", "fq_pie", "cake", "droptail",
]  # fmt: skip
DesignedName = Literal["pie", "docsis-pie", "pi2", "dualpi2", "red", "wred", "codel", "fq_codel", "cake"]
IdentMethod = Literal[
    "auto", "n4sid", "moesp", "cva", "pbsid", "sippy-n4sid", "sippy-moesp", "sippy-cva", "sippy-parsim-k"
]
Focus = Literal["both", "simulation", "prediction"]
NetworkName = Literal["abilene", "abilene-bursts", "merge", "tandem", "testbed", "three-in-a-row", "wan"]
ScenarioName = Literal[
    "arc-bottlenecks", "arc-capacity", "arc-flash-crowd", "arc-round-trip", "arc-staircase", "arc-staircase-bulk",
    "hftrac-testbed", "mpcc-dumbbell", "mpcc-fat-tree", "parking-lot", "three-links",
]  # fmt: skip
ModelName = Literal["connet-paper"]
