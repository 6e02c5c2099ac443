// What is written: result-RUN.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_RECORDER_H
#define NETCTRL_FIFO_RECORDER_H

#include "netctrl-fifo-tables.h"

#include <string>

namespace netctrl
{

constexpr struct
{
    const char* name;
    double Sample::*field;
} kColumns[] = {
    {"time_s", &Sample::timeS},
    {"rate_bit_per_s", &Sample::rateBitPerS},
    {"burst", &Sample::burst},
    {"delay_ms", &Sample::delayMs},
    {"jitter_ms", &Sample::jitterMs},
    {"mean_delay_ms", &Sample::meanDelayMs},
    {"mean_jitter_ms", &Sample::meanJitterMs},
    {"premium_received", &Sample::premiumReceived},
    {"premium_lost", &Sample::premiumLost},
    {"premium_bit_per_s", &Sample::premiumBitPerS},
    {"other_bit_per_s", &Sample::otherBitPerS},
    {"other_lost", &Sample::otherLost},
    {"utilization", &Sample::utilization},
};

/// Writes rows; the values of the law come last.
class Recorder
{
  public:
    /// @param outputs, inputs of the law
    Recorder(const std::string& path, std::size_t hops, std::size_t sources, std::size_t outputs, std::size_t inputs)
        : m_table(path)
    {
        for (const auto& column : kColumns)
        {
            m_table.Put(column.name);
        }
        Name("backlog_", hops);
        Name("source_", sources, "_bit_per_s");
        Name("given_", outputs);
        Name("measured_", outputs);
        Name("commanded_", inputs);
        m_table.EndRow();
    }

    void Write(const Sample& sample, const Vector& given, const Vector& measured, const Vector& commanded)
    {
        for (const auto& column : kColumns)
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
