// What every program of netctrl has: its command line, its progress on stdout, what it took.

#pragma once

#include "scenario.h"

#include "ns3/global-value.h"
#include "ns3/simulator.h"
#include "ns3/string.h"

#include <chrono>
#include <cstdio>
#include <string>

namespace netctrl
{

using namespace ns3;

/// Prints "progress PERCENT" from now on, a hundred times a run.
inline void
Progress(int percent)
{
    std::printf("progress %d\n", percent);
    std::fflush(stdout);
    Simulator::Schedule(NanoSeconds(kDuration / 100 + 1), &Progress, percent + 1);
}

/// Runs what is scheduled before an end and prints its progress. Usually events at the very end count, the last sample
/// among them.
inline void
Simulate(int64_t end = kDuration + 1)
{
    Simulator::ScheduleNow(&Progress, 0);
    Simulator::Stop(NanoSeconds(end));
    Simulator::Run();
}

/// Greatest resident memory so far [KiB], 0 where the system does not tell. Not getrusage's figure, which counts what the
/// process was before it became this program: its parent's memory.
inline long
PeakMemory()
{
    long peak = 0;
    if (std::FILE* status = std::fopen("/proc/self/status", "r"))
    {
        char line[256];
        while (std::fgets(line, sizeof line, status) && std::sscanf(line, "VmHWM: %ld", &peak) != 1)
        {
        }
        std::fclose(status);
    }
    return peak;
}

/// A program of two arguments: does work(FOLDER, RUN), with a usual RUN, and prints what it took; its exit status.
template <class Work>
int
Program(int argc, char* argv[], const std::string& usual, Work work, const char* usage = "FOLDER [RUN]")
{
    if (argc < 2 || argc > 3)
    {
        std::fprintf(stderr, "usage: %s %s\n", argv[0], usage);
        return 2;
    }
    GlobalValue::Bind("SchedulerType", StringValue("ns3::PriorityQueueScheduler")); // the same order in less time
    const auto start = std::chrono::steady_clock::now();
    work(argv[1], argc > 2 ? argv[2] : usual);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    std::printf("wall_s %.3f\npeak_rss_kib %ld\n", wall.count(), PeakMemory());
    return 0;
}

} // namespace netctrl
