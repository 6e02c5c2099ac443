// What every program of netctrl has: its progress on stdout, its files, what it took.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PROGRAM_H
#define NETCTRL_PROGRAM_H

#include "scenario.h"

#include "ns3/simulator.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
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

inline std::FILE*
Open(const std::string& folder, const std::string& name)
{
    const std::string path = folder + "/" + name;
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file)
    {
        std::perror(path.c_str());
        std::exit(1);
    }
    return file;
}

inline void
Close(std::FILE* file)
{
    if (std::ferror(file) || std::fclose(file) != 0)
    {
        std::perror("results");
        std::exit(1);
    }
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

/// Does it, and prints what it took; the program's exit status.
template <class Work>
int
Timed(Work work)
{
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    std::printf("wall_s %.3f\npeak_rss_kib %ld\n", wall.count(), PeakMemory());
    return 0;
}

/// A program of two arguments: does work(FOLDER, RUN), with a usual RUN; its exit status.
template <class Work>
int
Program(int argc, char* argv[], const std::string& usual, Work work)
{
    if (argc < 2 || argc > 3)
    {
        std::fprintf(stderr, "usage: %s FOLDER [RUN]\n", argv[0]);
        return 2;
    }
    return Timed([&] { work(argv[1], argc > 2 ? argv[2] : usual); });
}

} // namespace netctrl

#endif // NETCTRL_PROGRAM_H
