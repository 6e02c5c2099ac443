// The types of the tables in scenario.h, and the table of a run. Rates in bit/s, times in seconds.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_TABLES_H
#define NETCTRL_FIFO_TABLES_H

#include "netctrl-matrix.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace netctrl
{

/// A host with regulated flows.
struct SourceRow
{
    int flows;
    int burst;      ///< packets, unless the controller says otherwise
    double share;   ///< of the regulated rate
    double offered; ///< by all its flows
};

/// From start to stop a source sends at a rate of its own.
struct FailureRow
{
    int source;
    double start;
    double stop;
    double rate;
};

/// A flow that nobody regulates: it leaves after its hop.
struct CrossRow
{
    int hop;
    double rate;
    int burst;
};

/// What is asked for from a period on.
struct ReferenceRow
{
    int64_t period;
    Vector values;
};

/// One period, as it was measured at its end; netctrl.FifoSample.
struct Sample
{
    double timeS;
    double rateBitPerS;
    int burst;
    double delayMs; ///< moving average
    double jitterMs;
    double meanDelayMs; ///< over the period
    double meanJitterMs;
    int64_t premiumReceived;
    int64_t premiumLost;
    double premiumBitPerS;
    double otherBitPerS;
    int64_t otherLost;
    double utilization;
    std::vector<int64_t> backlog;     ///< of each hop
    std::vector<double> sourceBitPerS;
};

/// An output of the law: which measurement, and what one of its unit is in the law's.
struct Signal
{
    double Sample::*field;
    double scale;
};

/// What a run draws: in the file FOLDER/run-RUN.bin, little-endian: the phase of premium traffic [s], then for each flow,
/// regulated ones first, the number of its pauses (64 bits) and these, over their means.
struct RunTable
{
    double phase = 0.0;
    std::vector<std::vector<double>> pauses;

    RunTable(const std::string& path, std::size_t flows)
        : pauses(flows)
    {
        std::FILE* file = std::fopen(path.c_str(), "rb");
        if (!file)
        {
            std::perror(path.c_str());
            std::exit(1);
        }
        bool whole = std::fread(&phase, sizeof phase, 1, file) == 1;
        for (std::vector<double>& each : pauses)
        {
            uint64_t count = 0;
            whole = whole && std::fread(&count, sizeof count, 1, file) == 1 && count > 0 && count <= kMost;
            each.resize(whole ? count : 0);
            whole = whole && std::fread(each.data(), sizeof(double), count, file) == count;
        }
        whole = whole && std::fgetc(file) == EOF;
        std::fclose(file);
        if (!whole)
        {
            std::fprintf(stderr, "%s: not the table of a run of this scenario\n", path.c_str());
            std::exit(1);
        }
    }

  private:
    static constexpr uint64_t kMost = uint64_t{1} << 26;
};

} // namespace netctrl

#endif // NETCTRL_FIFO_TABLES_H
