"""An operator's session: are these queues stable, what would hold, and what does a law do on packets?"""

import netctrl
from netctrl.core.names import Registered

found = netctrl.certify("pie", rtt_s=(0.02, 0.1), flows=(5, 50), capacity_bit_per_s=20e6)  # wrong: "pie" -> "pei"
print(found.verdict, found.holds)  # wrong: verdict -> verdct
figures = found.certificate.predicted
if figures is not None:
    delay: float = figures.delay_p99_s  # wrong: p99 -> 99
dual = netctrl.certify("dualpi2", rtt_s=0.02, flows=4, capacity_bit_per_s=20e6)  # wrong: rtt_s=0.02 -> rtt="20ms"
own = netctrl.certify(Registered("blue"), rtt_s=0.02, flows=4, capacity_bit_per_s=20e6)
better = netctrl.queue_design("pie", rtt_s=0.02, flows=4, capacity_bit_per_s=20e6, p99_s=0.05)  # wrong: "pie" -> "sfq"
print(better.law.parameters["alpha"], better.verdict)
checked = netctrl.check_certificate(found, "packet")  # wrong: "packet" -> "paket"
settles: list[bool] = [check.settles for check in checked.checks]
queues = netctrl.read_queues("qdiscs.txt")
installed = netctrl.certify_queues(queues, rtt_s=0.02, flows=10, capacity_bit_per_s=20e6)
print(installed.verdict)
evaluated = netctrl.evaluate("pie", engine="packet", quick=True)  # wrong: "packet" -> "fluid"
sections: list[str] = [section.section for section in evaluated.sections]
