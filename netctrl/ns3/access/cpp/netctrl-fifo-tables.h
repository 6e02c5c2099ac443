// The types of the tables in scenario.h, and the table of a run. Rates in bit/s, times in seconds.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_TABLES_H
#define NETCTRL_FIFO_TABLES_H

#include "netctrl-files.h"
#include "netctrl-arrays.h"

#include <cstdint>
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

/// What is measured in a period, by name; scenario.h has it.
struct Columns;

struct Column
{
    const char* name;
    double Columns::*field;
};

/// An output of the law: which measurement, and what one of its unit is in the law's.
struct Signal
{
    double Columns::*field;
    double scale;
};

/// What a run draws: in the file FOLDER/run-RUN.bin, little-endian: the phase of premium traffic [s], then for each flow,
/// regulated ones first, the number of its pauses (64 bits) and these, over their means.
struct RunTable
{
    double phase;
    std::vector<std::vector<double>> pauses;

    RunTable(const std::string& path, std::size_t flows)
    {
        RunFile file(path);
        phase = file.Take<double>(1).front();
        for (std::size_t flow = 0; flow < flows; ++flow)
        {
            pauses.push_back(file.TakeCounted<double>(1, uint64_t{1} << 26));
        }
        file.End();
    }
};

} // namespace netctrl

#endif // NETCTRL_FIFO_TABLES_H
