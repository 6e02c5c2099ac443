// A link's rate by a law whose C is compiled into FOLDER/law.so (netctrl-link-law.c), without ns-3. C++17.

#pragma once

#include "netctrl-records.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace netctrl
{

/// What the law's decisions are beside; rates in bit/s, backlogs over an interval.
struct DecidedRow
{
    double seconds = From().Take<double>("seconds"); ///< of an interval
    std::size_t late = From().Take<std::size_t>("late"); ///< intervals until a rate acts
    std::size_t age = From().Take<std::size_t>("age"); ///< intervals by which backlogs are measured late
    /// Known to arrive in each interval, as many more at the end as a decision takes; else what came in the last one
    /// is taken for it.
    std::vector<double> announced =
        From().Has("announced") ? From().TakeNumbers("announced") : std::vector<double>{};
};

class DecidedLink
{
  public:
    DecidedLink(const DecidedRow& row, double first, const std::string& folder)
        : m_row(row),
          m_underWay(row.late, first)
    {
        const std::string path = folder + "/law.so";
        m_library = dlopen(path.c_str(), RTLD_NOW);
        if (!m_library)
        {
            std::fprintf(stderr, "%s; make -C %s law.so\n", dlerror(), folder.c_str());
            std::exit(2);
        }
        m_ahead = *Find<int*>("netctrl_ahead");
        m_decide = Find<double (*)(const double*, const double*)>("netctrl_decide");
        Find<void (*)(double)>("netctrl_start")(first / kMbit);
    }

    DecidedLink(const DecidedLink&) = delete;
    DecidedLink& operator=(const DecidedLink&) = delete;

    ~DecidedLink()
    {
        dlclose(m_library);
    }

    /// The rate from now on, from what the link measured in the interval that ended.
    double Decide(int64_t step, double backlog, double arrived)
    {
        m_seen.push_back(backlog * m_row.seconds / kMbit);
        if (m_seen.size() > m_row.age + 1)
        {
            m_seen.pop_front();
        }
        std::vector<double> arrivals(m_ahead, arrived / kMbit);
        for (std::size_t k = 0; k < arrivals.size() && !m_row.announced.empty(); ++k)
        {
            arrivals[k] = m_row.announced[std::min(step + k, m_row.announced.size() - 1)] / kMbit;
        }
        m_underWay.push_back(kMbit * m_decide(&m_seen.front(), arrivals.data()));
        const double rate = m_underWay.front();
        m_underWay.pop_front();
        return rate;
    }

  private:
    template <class Symbol>
    Symbol Find(const char* name) const
    {
        void* found = dlsym(m_library, name);
        if (!found)
        {
            std::fprintf(stderr, "law.so has no %s\n", name);
            std::exit(2);
        }
        return reinterpret_cast<Symbol>(found);
    }

    static constexpr double kMbit = 1e6;

    const DecidedRow& m_row;
    void* m_library;
    int m_ahead;
    double (*m_decide)(const double*, const double*);
    std::deque<double> m_seen;     ///< backlogs [Mbit]
    std::deque<double> m_underWay; ///< rates that don't act yet
};

} // namespace netctrl
