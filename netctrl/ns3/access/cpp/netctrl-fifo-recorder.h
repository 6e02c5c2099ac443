// What is written: result-RUN.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_RECORDER_H
#define NETCTRL_FIFO_RECORDER_H

#include "netctrl-fifo-tables.h"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace netctrl
{

/// Writes rows; the values of the law come last.
class Recorder
{
  public:
    /// @param outputs, inputs of the law
    Recorder(std::FILE* file, std::size_t hops, std::size_t sources, std::size_t outputs, std::size_t inputs)
        : m_file(file)
    {
        std::fprintf(m_file,
                     "time_s,rate_bit_per_s,burst,delay_ms,jitter_ms,mean_delay_ms,mean_jitter_ms,premium_received,"
                     "premium_lost,premium_bit_per_s,other_bit_per_s,other_lost,utilization");
        Name("backlog_%zu", hops);
        Name("source_%zu_bit_per_s", sources);
        Name("given_%zu", outputs);
        Name("measured_%zu", outputs);
        Name("commanded_%zu", inputs);
        std::fprintf(m_file, "\n");
    }

    void Write(const Sample& sample,
               const Vector& given,
               const Vector& measured,
               const Vector& commanded)
    {
        Put(sample.timeS, "");
        Put(sample.rateBitPerS);
        Put(sample.burst);
        Put(sample.delayMs);
        Put(sample.jitterMs);
        Put(sample.meanDelayMs);
        Put(sample.meanJitterMs);
        Put(static_cast<double>(sample.premiumReceived));
        Put(static_cast<double>(sample.premiumLost));
        Put(sample.premiumBitPerS);
        Put(sample.otherBitPerS);
        Put(static_cast<double>(sample.otherLost));
        Put(sample.utilization);
        for (const int64_t packets : sample.backlog)
        {
            Put(static_cast<double>(packets));
        }
        for (const double value : sample.sourceBitPerS)
        {
            Put(value);
        }
        for (const Vector* values : {&given, &measured, &commanded})
        {
            for (const double value : *values)
            {
                Put(value);
            }
        }
        std::fprintf(m_file, "\n");
    }

  private:
    void Name(const char* format, std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i)
        {
            char name[64];
            std::snprintf(name, sizeof name, format, i);
            std::fprintf(m_file, ",%s", name);
        }
    }

    void Put(double value, const char* before = ",")
    {
        std::fprintf(m_file, "%s%.17g", before, value);
    }

    std::FILE* m_file;
};

} // namespace netctrl

#endif // NETCTRL_FIFO_RECORDER_H
