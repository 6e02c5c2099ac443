// A tracking law at work, behind its governor and its schedule, without ns-3. C++17.
//
// Fixed: netctrl copies this file as it is. The law is in netctrl-tracking-law.h, its numbers are in gains.h.

#ifndef NETCTRL_TRACKING_H
#define NETCTRL_TRACKING_H

#include "netctrl-tracking-law.h"

namespace netctrl
{

/// Steps of a law; a governor or a schedule without numbers is none.
class Tracker
{
  public:
    Tracker(const TrackingGains& gains,
            const ReferenceGovernor& governor,
            const GainSchedule& schedule,
            const TrackingState& start)
        : m_gains(gains),
          m_governor(governor),
          m_schedule(schedule),
          m_state(start),
          m_given(gains.outputOffset)
    {
    }

    /// Inputs until the next sample, within their limits.
    const Vector& Applied() const
    {
        return m_state.applied;
    }

    /// The same before the limits.
    const Vector& Commanded() const
    {
        return m_state.commanded;
    }

    /// The reference that the law was given last.
    const Vector& Given() const
    {
        return m_given;
    }

    /// One sample: measured outputs and references, with their offsets.
    void Step(const Vector& measured, const Vector& wanted)
    {
        const bool governed = m_governor.byState.rows > 0;
        const bool scheduled = m_schedule.points.size() > 0;
        m_given = governed ? Govern(m_governor, m_state, m_given, wanted) : wanted;
        const Vector seen = scheduled ? Scheduled(m_schedule, measured, m_given, m_state.applied) : measured;
        m_state = StepTracking(m_gains, m_state, seen, m_given);
    }

  private:
    const TrackingGains& m_gains;
    const ReferenceGovernor& m_governor;
    const GainSchedule& m_schedule;
    TrackingState m_state;
    Vector m_given;
};

} // namespace netctrl

#endif // NETCTRL_TRACKING_H
