// What is written: result-RUN.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_RECORDER_H
#define NETCTRL_FIFO_RECORDER_H

#include "gains.h"
#include "netctrl-files.h"
#include "scenario.h"

#include <string>
#include <vector>

namespace netctrl
{

/// One period, as it was measured at its end.
struct Sample : Columns
{
    std::vector<int64_t> backlog; ///< of each hop
    std::vector<double> sourceBitPerS;
};

/// Writes rows; the values of the law come last.
class Recorder
{
  public:
    explicit Recorder(const std::string& path)
        : m_table(path)
    {
        for (const Column& column : kColumns)
        {
            m_table.Put(column.name);
        }
        Name("backlog_", kHops);
        Name("source_", kSources.size(), "_bit_per_s");
        Name("given_", kSignals.size());
        Name("measured_", kSignals.size());
        Name("commanded_", kLaw.low.size());
        m_table.EndRow();
    }

    void Write(const Sample& sample, const Vector& given, const Vector& measured, const Vector& commanded)
    {
        for (const Column& column : kColumns)
        {
            m_table.Put(sample.*column.field);
        }
        m_table.PutAll(sample.backlog);
        m_table.PutAll(sample.sourceBitPerS);
        for (const Vector* values : {&given, &measured, &commanded})
        {
            m_table.PutAll(*values);
        }
        m_table.EndRow();
    }

  private:
    void Name(const std::string& before, std::size_t count, const std::string& behind = "")
    {
        for (std::size_t i = 0; i < count; ++i)
        {
            m_table.Put(before + std::to_string(i) + behind);
        }
    }

    Table m_table;
};

} // namespace netctrl

#endif // NETCTRL_FIFO_RECORDER_H
