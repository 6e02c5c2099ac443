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
        : state(start),
          given(gains.outputOffset),
          m_gains(gains),
          m_governor(governor),
          m_schedule(schedule)
    {
    }

    /// One sample: measured outputs and references, with their offsets.
    void Step(const Vector& measured, const Vector& wanted)
    {
        const bool governed = m_governor.byState.rows > 0;
        const bool scheduled = m_schedule.points.size() > 0;
        given = governed ? Govern(m_governor, state, given, wanted) : wanted;
        const Vector seen = scheduled ? Scheduled(m_schedule, measured, given, state.applied) : measured;
        state = StepTracking(m_gains, state, seen, given);
    }

    TrackingState state; ///< its inputs hold until the next sample
    Vector given;        ///< the reference that the law was given last

  private:
    const TrackingGains& m_gains;
    const ReferenceGovernor& m_governor;
    const GainSchedule& m_schedule;
};

} // namespace netctrl

#endif // NETCTRL_TRACKING_H
