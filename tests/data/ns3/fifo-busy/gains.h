// Made by netctrl export ns3: do not edit.
// The law of the regulators with its gains; what they mean is in netctrl-tracking.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-tracking.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [\"netctrl\", \"a \134\"quote\134\" \052/\"], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// 2 states, 2 inputs, 2 outputs; without units in the Design: Mbit/s and ms.
inline const TrackingTable kLaw = {
    {2, 2, {0.5, 0.125, 0.0, 0.25}}, // A
    {2, 2, {0.01, 0.02, 0.25, 0.0}}, // B: from "R [Mbit/s]", "burst"
    {2, 2, {1.0, 0.0, 0.0, 1.0}}, // C: to "delay [ms]", "throughput [Mbit/s]"
    {2, 2, {0.005, 0.03125, 0.75, 0.0}}, // D
    {2, 2, {0.25, 0.0, 0.0, 0.125}}, // L: estimator
    {2, 2, {0.5, 0.25, 2.0, -0.125}}, // K: state feedback
    {2, 2, {1.0, 0.0, 0.0, 1.0}}, // W: what is tracked
    {2, 2, {-0.0625, -0.25, -4.0, 0.0625}}, // Kz: integral feedback
    {2, 2, {-0.06225680933852139, -0.24902723735408555, -3.9844357976653706, 0.062256809338520645}}, // its pseudo-inverse
    {55.0, 6.0}, // inputs at the operating point
    {0.6, 55.0}, // outputs at the operating point
    {0.0, 1.0}, // least inputs
    {95.0, 20.0}, // greatest inputs
    {-0.9338521400778208, -59.76653696498056}, // z at the start
    {40.0, 6.0}, // inputs at the start
};

/// Cuts references to what can be had.
inline const GovernorTable kGovernor = {
    0, // samples ahead; 0: no governor
    {}, {}, {}, {}, {}, {}, // nearest, gain, by state, by reference, low, high
};

/// Gains along the characteristic curve.
inline const ScheduleTable kSchedule = {
    {}, {}, // no schedule
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
