// Made by netctrl export ns3: do not edit.
// The law of the regulators with its gains; what they mean is in netctrl-tracking-law.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-tracking.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [\"netctrl\", \"a \134\"quote\134\" \052/\"], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// From "R [Mbit/s]", "burst"
/// to "delay [ms]", "throughput [Mbit/s]"; without units in the Design: Mbit/s and ms.
inline const TrackingGains kLaw = {
    {2, 2, {0.5, 0.125, 0.0, 0.25}}, // A: (n, n)
    {2, 2, {0.01, 0.02, 0.25, 0.0}}, // B: (n, m)
    {2, 2, {1.0, 0.0, 0.0, 1.0}}, // C: (p, n)
    {2, 2, {0.005, 0.03125, 0.75, 0.0}}, // D: (p, m)
    {2, 2, {0.25, 0.0, 0.0, 0.125}}, // L: (n, p) estimator gain
    {2, 2, {0.5, 0.25, 2.0, -0.125}}, // K: (m, n) state feedback
    {2, 2, {1.0, 0.0, 0.0, 1.0}}, // W: (q, p) combinations of outputs that follow their references
    {2, 2, {-0.0625, -0.25, -4.0, 0.0625}}, // integral_gain: (m, q) Kz
    {2, 2, {-0.062256809338521374, -0.24902723735408555, -3.9844357976653697, 0.062256809338520715}}, // back: (q, m) pseudo-inverse of Kz
    {55.0, 6.0}, // input_offset: (m) at the operating point
    {0.6, 55.0}, // output_offset: (p) at the operating point
    {0.0, 1.0}, // low: (m) least inputs
    {95.0, 20.0}, // high: (m) greatest inputs
    true, // integrates: whether the law has integrals; without them the reference enters by the observer
};

/// When the law is switched on.
inline const TrackingState kStart = {
    {0.0, 0.0}, // estimate: (n) of the state
    {-0.9338521400778206, -59.766536964980546}, // integral: (q) z
    {40.0, 6.0}, // applied: (m) v, inputs as they were applied [the model's units]
    {40.0, 6.0}, // commanded: (m) u, before the limits
};

/// Cuts references to what can be had.
inline const ReferenceGovernor kGovernor = {};

/// Gains along the characteristic curve.
inline const GainSchedule kSchedule = {};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
