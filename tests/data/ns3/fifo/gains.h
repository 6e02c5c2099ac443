// Made by netctrl export ns3: do not edit.
// The law of the regulators with its gains; what they mean is in netctrl-tracking-law.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-tracking.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Why the gains can be trusted: the certificate of the Design.
namespace design
{
inline constexpr const char* kStatus = "stable";
inline constexpr const char* kMethod = "connet";
inline constexpr const char* kLawMethod = "paper";
inline constexpr double kSpectralRadius = 0.9166186793092275; ///< of the closed loop, a sample
inline constexpr double kSteadyError = 0.009695766944954679; ///< of what is tracked, per unit of its reference; HUGE_VAL: not stable
inline constexpr double kBandwidth = 0.03852128778271637; ///< [Hz], -3 dB; HUGE_VAL: up to half the sampling rate
inline constexpr double kDiskMargin = 1.525864269042583; ///< at the plant's input
inline constexpr double kLowestGain = 0.134473619736407; ///< times the model's that leaves the loop stable
inline constexpr double kHighestGain = 7.43640278264379; ///< the same; HUGE_VAL: any
inline constexpr double kPhase = 74.68234769187175; ///< [degree]
// attainable: 0.0297737 to 1.88567
// warning: "tracking rests on the model: with a gain 20 % off it settles 1.21 % off; method lqi does not"
// warning: "the controller by itself isn't stable (|pole| 1.00186): in saturation or open loop it diverges"
// warning: "1 input, 2 outputs: only 1 combination can follow; jitter changes by 0.7437 for 1 of delay"
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";
} // namespace design

/// From "R [Mbit/s]"
/// to "delay [ms]", "jitter [ms]"; without units in the Design: Mbit/s and ms.
inline const TrackingGains kLaw = {
    {2, 2, {0.7978, 0.626, 0.079, 0.2525}}, // A: (n, n)
    {2, 1, {-0.0243, 0.0275}}, // B: (n, m)
    {2, 2, {-0.5002, 0.3134, -0.1988, -0.1957}}, // C: (p, n)
    {2, 1, {0.0108, 0.025}}, // D: (p, m)
    {2, 2, {-0.10204999999999997, -0.16490000000000002, 0.10074999999999999, -0.6490500000000001}}, // L: (n, p) estimator gain
    {1, 2, {-15.696317717043355, -9.312924634954491}}, // K: (m, n) state feedback
    {0, 2, {}}, // W: (q, p) combinations of outputs that follow their references
    {1, 0, {}}, // integral_gain: (m, q) Kz
    {0, 1, {}}, // back: (q, m) pseudo-inverse of Kz
    {0.0}, // input_offset: (m) at the operating point
    {0.0, 0.0}, // output_offset: (p) at the operating point
    {0.0}, // low: (m) least inputs
    {95.0}, // high: (m) greatest inputs
    false, // integrates: whether the law has integrals; without them the reference enters by the observer
};

/// When the law is switched on.
inline const TrackingState kStart = {
    {0.0, 0.0}, // estimate: (n) of the state
    {}, // integral: (q) z
    {0.0}, // applied: (m) v, inputs as they were applied [the model's units]
    {0.0}, // commanded: (m) u, before the limits
};

/// Cuts references to what can be had.
inline const ReferenceGovernor kGovernor = {};

/// Gains along the characteristic curve.
inline const GainSchedule kSchedule = {};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
