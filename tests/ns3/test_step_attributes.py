"""Step thresholds as attributes of ns-3's own queue discs: which packets they mark, in ns-3 itself."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from netctrl.core.errors import InvalidValue
from netctrl.ns3.attributes import attribute_defaults, ns3_attributes
from netctrl.ns3.program import compile_program, find_ns3

PROGRAM = """
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include <fstream>
#include <iostream>
using namespace ns3;

// Defaults of a file as ConfigStore loads them; then 80 packets come at once, and leave one a microsecond.
// Prints those that are marked, counted from 0.
int main(int argc, char* argv[])
{
    std::ifstream lines(argv[1]);
    for (std::string word, name, value; lines >> word >> name >> value;)
    {
        Config::SetDefault(name, StringValue(value.substr(1, value.size() - 2)));
    }
    ObjectFactory factory(argv[2]);
    auto disc = factory.Create<QueueDisc>();
    disc->Initialize();
    for (int i = 0; i < 80; ++i)
    {
        Ipv4Header header;
        header.SetEcn(Ipv4Header::ECN_ECT0);
        header.SetPayloadSize(980);
        auto item = Create<Ipv4QueueDiscItem>(Create<Packet>(980), Address(), 0x0800, header);
        item->SetTimeStamp(Simulator::Now());
        disc->Enqueue(item);
    }
    for (int i = 0; i < 80; ++i)
    {
        Simulator::Schedule(MicroSeconds(i), [disc, i] {
            auto item = DynamicCast<Ipv4QueueDiscItem>(disc->Dequeue());
            if (item && item->GetHeader().GetEcn() == Ipv4Header::ECN_CE)
            {
                std::cout << i << " ";
            }
        });
    }
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
"""


def test_attributes_of_a_step() -> None:
    found = ns3_attributes("dctcp", {"k_bytes": 75_000, "g": 0.0625})
    assert (found["TypeId"], found["MinTh"], found["MaxTh"]) == ("ns3::RedQueueDisc", "75001.0", "75001.0")
    assert found["MaxSize"] == "1200000B"
    assert ns3_attributes("dctcp", {"k_packets": 50, "g": 0.0625})["MaxSize"] == "800p"
    timed = ns3_attributes("dctcp", {"k_s": 60e-6, "g": 0.0625})
    assert (timed["TypeId"], timed["CeThreshold"], timed["Target"]) == (
        "ns3::CoDelQueueDisc",
        "60416ns",
        "1000000000ns",
    )
    with pytest.raises(InvalidValue, match="pie --rfc and ecn"):
        ns3_attributes("wred", {})


@pytest.mark.needs("ns3")
def test_ns3_marks_what_finds_more_than_the_threshold(tmp_path: Path) -> None:
    """Packets of 1000 bytes: the one that finds 30 passes, the one that finds 31 is marked, as are those that wait."""
    ns3 = find_ns3()
    (tmp_path / "main.cc").write_text(PROGRAM)
    common = files("netctrl.ns3") / "common" / "cpp"
    shutil.copy(str(common / "Makefile"), tmp_path / "Makefile")
    compile_program(tmp_path, ns3)

    def marked(**threshold: float) -> list[int]:
        attributes = ns3_attributes("dctcp", {**threshold, "g": 0.0625})
        (tmp_path / "attributes.txt").write_text(attribute_defaults(attributes))
        command = [str(tmp_path / "scenario"), str(tmp_path / "attributes.txt"), attributes["TypeId"]]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True)
        return [int(word) for word in ended.stdout.split()]

    assert marked(k_bytes=30_000) == list(range(31, 80))
    assert marked(k_packets=30) == list(range(31, 80))
    # 30 us are 30 units of 1024 ns, 30.72 us: from 31 units, 31.744 us, on.
    assert marked(k_s=30e-6) == list(range(32, 80))
