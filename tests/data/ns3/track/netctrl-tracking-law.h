// Made by netctrl export ns3: do not edit.
// A law that tracks references, its governor and its schedule: printed from the Python that netctrl simulates.

#ifndef NETCTRL_TRACKING_LAW_H
#define NETCTRL_TRACKING_LAW_H

#include "netctrl-arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace netctrl
{

struct TrackingGains
{
    Matrix A;            ///< (n, n)
    Matrix B;            ///< (n, m)
    Matrix C;            ///< (p, n)
    Matrix D;            ///< (p, m)
    Matrix L;            ///< (n, p) estimator gain
    Matrix K;            ///< (m, n) state feedback
    Matrix W;            ///< (q, p) combinations of outputs that follow their references
    Matrix integralGain; ///< (m, q) Kz
    Matrix back;         ///< (q, m) pseudo-inverse of Kz
    Vector inputOffset;  ///< (m) at the operating point
    Vector outputOffset; ///< (p) at the operating point
    Vector low;          ///< (m) least inputs
    Vector high;         ///< (m) greatest inputs
    bool integrates;     ///< whether the law has integrals; without them the reference enters by the observer
    Vector points;       ///< (k) first inputs at which its curve is broken, rising; 0 and 1 without a curve
    Vector linearised;   ///< (k) the model's inputs there, rising
};

struct TrackingState
{
    Vector estimate{};  ///< (n) of the state
    Vector integral{};  ///< (q) z
    Vector applied{};   ///< (m) v, inputs as they were applied [the law's units]
    Vector commanded{}; ///< (m) u, before the limits
};

struct ReferenceGovernor
{
    Vector outputOffset; ///< (p) of the law; what follows is for deviations
    Matrix nearest;      ///< (m, p) steady inputs for a unit of reference
    Matrix gain;         ///< (p, m) steady outputs for a unit of input
    Matrix byState;      ///< (T m, n + q) inputs to come from the law's state [x; z], the reference at its offset
    Matrix byReference;  ///< (T m, p) inputs to come from a constant reference
    Vector low;          ///< (m) what the governor lets inputs come down to
    Vector high;         ///< (m) and up to
};

struct GainSchedule
{
    Vector points;  ///< (k) inputs, rising [the law's units]
    Matrix factors; ///< (k, p) gain of the law's model over the gain here
};

/// Inputs, (m), of which the first goes through a piecewise linear curve, straight on beyond its ends.
inline Vector
Curved(const Vector& points, const Vector& values, const Vector& inputs)
{
    const int64_t last = static_cast<int64_t>(points.size()) - 1;
    int64_t right = std::min<int64_t>(1, last);
    while (right < last && points[right] < inputs[0])
    {
        right += 1;
    }
    const int64_t left = right - 1;
    const double slope = (values[right] - values[left]) / (points[right] - points[left]);
    Vector through = 1.0 * inputs;
    through[0] = values[left] + slope * (inputs[0] - points[left]);
    return through;
}

/// One sample of u = -K x - Kz z + u0, x+ = A x + B v + L (y - C x - D v), z+ = z + W (r - y).
///
/// v is u within its limits; where it isn't u, z is set back until it is (Hanus' conditioning). Without W and Kz the
/// reference enters by the observer: y - r in place of y. With a curve, u and v are inputs of the model, in which the
/// plant is linear; their images under its inverse are what is limited and applied. Inputs and outputs are deviations
/// from their offsets, in the units of the Design; `applied` of what comes back is what to apply until the next sample.
///
/// Source: CONNET paper, eqs. 2 and 3.
inline TrackingState
StepTracking(const TrackingGains& gains, const TrackingState& state, const Vector& measured,
    const Vector& reference)
{
    const Vector y = measured - gains.outputOffset;
    const Vector r = reference - gains.outputOffset;
    const Vector v = Curved(gains.points, gains.linearised, state.applied) - gains.inputOffset;
    Vector innovation = y - gains.C * state.estimate - gains.D * v;
    if (!gains.integrates)
    {
        innovation = innovation - r;
    }
    Vector integral = state.integral + gains.W * (r - y);
    const Vector estimate = gains.A * state.estimate + gains.B * v + gains.L * innovation;
    const Vector linear = -(gains.K * estimate) - gains.integralGain * integral + gains.inputOffset;
    const Vector commanded = Curved(gains.linearised, gains.points, linear);
    const Vector applied = Clip(commanded, gains.low, gains.high);
    integral = integral - gains.back * (Curved(gains.points, gains.linearised, applied) - linear);
    return TrackingState{estimate, integral, applied, commanded};
}

/// The reference to use for the next sample: as far from `applied` towards `desired` as inputs stay within limits.
///
/// On the way, inputs are predicted with the law's own model from its state, before its step; the line from `applied`,
/// what was used last, to the nearest reference that can be had is cut where one of them would reach a limit.
///
/// Source: Gilbert, Kolmanovsky, Tan, Int. J. Robust Nonlinear Control 5 (1995) 487-504 (scalar governor).
inline Vector
Govern(const ReferenceGovernor& governor, const TrackingState& state, const Vector& applied, const Vector& desired)
{
    const Vector start = applied - governor.outputOffset;
    const Vector steady = governor.nearest * (desired - governor.outputOffset);
    const Vector way = governor.gain * Clip(steady, governor.low, governor.high) - start;
    const Vector inputs = governor.byState * Concatenate(state.estimate, state.integral) + governor.byReference *
        start;
    const Vector change = governor.byReference * way;
    const Vector limit = Where(change > 0.0, Resize(governor.high, static_cast<int64_t>(change.size())),
        Resize(governor.low, static_cast<int64_t>(change.size())));
    const Vector room = Where(change != 0.0, (limit - inputs) / change, 1.0);
    const double share = std::max(std::min(room.min(), 1.0), 0.0);
    return governor.outputOffset + start + share * way;
}

/// The outputs that the law is to see: r + (g0/g)(y - r), whose slope is that of its model.
///
/// Where y = r nothing changes: what is tracked is the same, in the mean too. Between points the factor is interpolated
/// by its logarithm; beyond them it is that of the end. `applied` is the input under which `measured` came about.
inline Vector
Scheduled(const GainSchedule& schedule, const Vector& measured, const Vector& reference, const Vector& applied)
{
    const int64_t last = static_cast<int64_t>(schedule.points.size()) - 1;
    int64_t right = std::min<int64_t>(1, last);
    while (right < last && schedule.points[right] < applied[0])
    {
        right += 1;
    }
    const int64_t left = std::max<int64_t>(right - 1, 0);
    Vector logs = std::log(schedule.factors[left]);
    if (left < right)
    {
        const double at = std::min(std::max(applied[0], schedule.points[left]), schedule.points[right]);
        const Vector slope = (std::log(schedule.factors[right]) - logs) / (schedule.points[right] -
            schedule.points[left]);
        logs = slope * (at - schedule.points[left]) + logs;
    }
    return reference + std::exp(logs) * (measured - reference);
}

template <class Visit>
void
ForEach(TrackingGains& row, Visit visit)
{
    visit("A", row.A);
    visit("B", row.B);
    visit("C", row.C);
    visit("D", row.D);
    visit("L", row.L);
    visit("K", row.K);
    visit("W", row.W);
    visit("integral_gain", row.integralGain);
    visit("back", row.back);
    visit("input_offset", row.inputOffset);
    visit("output_offset", row.outputOffset);
    visit("low", row.low);
    visit("high", row.high);
    visit("integrates", row.integrates);
    visit("points", row.points);
    visit("linearised", row.linearised);
}

template <class Visit>
void
ForEach(TrackingState& row, Visit visit)
{
    visit("estimate", row.estimate);
    visit("integral", row.integral);
    visit("applied", row.applied);
    visit("commanded", row.commanded);
}

template <class Visit>
void
ForEach(ReferenceGovernor& row, Visit visit)
{
    visit("output_offset", row.outputOffset);
    visit("nearest", row.nearest);
    visit("gain", row.gain);
    visit("by_state", row.byState);
    visit("by_reference", row.byReference);
    visit("low", row.low);
    visit("high", row.high);
}

template <class Visit>
void
ForEach(GainSchedule& row, Visit visit)
{
    visit("points", row.points);
    visit("factors", row.factors);
}

} // namespace netctrl

#endif // NETCTRL_TRACKING_LAW_H
