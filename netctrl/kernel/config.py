"""Configuration of the kernel: the smallest one, `tinyconfig`, and what a laboratory of networks needs.

Options that a version doesn't have are in `OPTIONAL`; any other one that isn't as asked for fails the build.
"""

from __future__ import annotations

from collections.abc import Mapping

HZ = 1000
"""Ticks a second, in which timers of queues and of TCP count. The architecture's own 100 would run a PIE that updates
each 15 ms at 20 ms."""

_YES = """
64BIT CC_OPTIMIZE_FOR_PERFORMANCE SLUB
UML_TIME_TRAVEL_SUPPORT HIGH_RES_TIMERS NO_HZ_IDLE
HOSTFS STDERR_CONSOLE SSL NULL_CHAN TTY UNIX98_PTYS PRINTK BUG MAGIC_SYSRQ
MULTIUSER BINFMT_ELF BINFMT_SCRIPT FUTEX EPOLL SIGNALFD TIMERFD EVENTFD POSIX_TIMERS FHANDLE FILE_LOCKING
ADVISE_SYSCALLS MEMBARRIER SYSVIPC POSIX_MQUEUE BLOCK SYSCTL
PROC_FS PROC_SYSCTL PROC_CHILDREN SYSFS TMPFS SHMEM
NAMESPACES UTS_NS IPC_NS USER_NS PID_NS NET_NS
NET PACKET UNIX INET IPV6 INET_DIAG INET_TCP_DIAG BPF_SYSCALL
NETDEVICES NET_CORE DUMMY IFB VETH TUN
NET_SCHED NET_SCH_HTB NET_SCH_TBF NET_SCH_HFSC NET_SCH_NETEM NET_SCH_INGRESS
NET_SCH_PIE NET_SCH_FQ_PIE NET_SCH_CODEL NET_SCH_FQ_CODEL NET_SCH_CAKE NET_SCH_FQ NET_SCH_RED NET_SCH_GRED NET_SCH_SFB
NET_SCH_SFQ NET_SCH_CHOKE NET_SCH_PRIO NET_SCH_DRR NET_SCH_ETS NET_SCH_QFQ
NET_CLS_BPF NET_CLS_U32 NET_CLS_MATCHALL NET_CLS_FLOWER NET_CLS_FW NET_CLS_BASIC NET_CLS_ACT
NET_ACT_MIRRED NET_ACT_GACT NET_ACT_POLICE NET_ACT_BPF NET_ACT_SKBEDIT
TCP_CONG_ADVANCED TCP_CONG_CUBIC TCP_CONG_BBR TCP_CONG_BIC TCP_CONG_WESTWOOD TCP_CONG_HTCP TCP_CONG_HSTCP TCP_CONG_HYBLA
TCP_CONG_VEGAS TCP_CONG_NV TCP_CONG_SCALABLE TCP_CONG_LP TCP_CONG_VENO TCP_CONG_YEAH TCP_CONG_ILLINOIS TCP_CONG_DCTCP
TCP_CONG_CDG
"""
_NO = "IPV6_SIT RAID6_PQ_BENCHMARK AIO CGROUPS IP_MULTICAST BPF_JIT MODULES"
# 6.17 and later have dualpi2.
_OPTIONAL = "NET_SCH_DUALPI2"

OPTIONS: Mapping[str, bool] = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}
"""Name of an option without CONFIG_ -> whether it is on."""
OPTIONAL: tuple[str, ...] = tuple(_OPTIONAL.split())
"""Options that only some versions have."""


def fragment() -> str:
    """Lines for the end of a configuration file; `make olddefconfig` then completes it."""
    wanted = {**OPTIONS, **dict.fromkeys(OPTIONAL, True)}
    return "".join(f"CONFIG_{name}={'y' if on else 'n'}\n" for name, on in wanted.items())


def root_kconfig(text: str) -> str:
    """The tree's description of its options with another default of HZ, for which it has no option here.

    Of several defaults the first one is taken, so the tree itself needs no change.
    """
    first = next((line for line in text.splitlines(keepends=True) if line.startswith("mainmenu")), "")
    return text.replace(first, f"{first}\nconfig HZ\n\tint\n\tdefault {HZ}\n\n", 1)


def read_config(text: str) -> set[str]:
    """Names of the options that a configuration file switches on."""
    lines = (line.removeprefix("CONFIG_").partition("=") for line in text.splitlines() if line.startswith("CONFIG_"))
    return {name for name, _, value in lines if value == "y"}


def not_kept(on: set[str]) -> list[str]:
    """Options that the configuration doesn't have as asked for, as a version without them drops them silently."""
    return [name for name, wanted in OPTIONS.items() if (name in on) != wanted]
