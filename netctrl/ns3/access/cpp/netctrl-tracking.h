// Laws that track references with an observer, a governor of references and gains along a curve, without ns-3. C++17.
//
//   u = -K x - Kz z + u0,  x+ = A x + B v + L (y - C x - D v),  z+ = z + W (r - y)
//
// v is u within its limits; where it isn't u, z is set back until it is (Hanus' conditioning). Without W and Kz the
// reference enters by the observer: x+ = A x + B v + L (y - r - C x - D v) (CONNET paper, eqs. 2 and 3). Inputs and
// outputs are deviations from their offsets, in the units of the Design. Sources: netctrl.laws.tracking.tracking,
// netctrl.laws.tracking.reference_governor and netctrl.laws.tracking.schedule.
//
// Fixed: netctrl copies this file as it is. The numbers are in gains.h.

#ifndef NETCTRL_TRACKING_H
#define NETCTRL_TRACKING_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace netctrl
{

using Vector = std::vector<double>;

/// Row by row.
struct Matrix
{
    std::size_t rows;
    std::size_t columns;
    Vector values;
};

/// y += factor M x, for the block of rows of M that starts at `first`.
inline void
Add(Vector& y, double factor, const Matrix& M, const Vector& x, std::size_t first = 0)
{
    for (std::size_t i = 0; i < y.size(); ++i)
    {
        double sum = 0.0;
        for (std::size_t j = 0; j < M.columns; ++j)
        {
            sum += M.values[(first + i) * M.columns + j] * x[j];
        }
        y[i] += factor * sum;
    }
}

inline Vector
Difference(const Vector& x, const Vector& y)
{
    Vector found(x.size());
    std::transform(x.begin(), x.end(), y.begin(), found.begin(), std::minus<double>());
    return found;
}

inline Vector
Clip(const Vector& x, const Vector& low, const Vector& high)
{
    Vector found(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
    {
        found[i] = std::min(std::max(x[i], low[i]), high[i]);
    }
    return found;
}

/// A law for m inputs, p outputs, n states and q integrals (none: the published law), and how it starts.
struct TrackingTable
{
    Matrix A;            ///< (n, n)
    Matrix B;            ///< (n, m)
    Matrix C;            ///< (p, n)
    Matrix D;            ///< (p, m)
    Matrix L;            ///< (n, p)
    Matrix K;            ///< (m, n)
    Matrix W;            ///< (q, p)
    Matrix Kz;           ///< (m, q)
    Matrix back;         ///< (q, m) pseudo-inverse of Kz
    Vector inputOffset;  ///< (m) u0
    Vector outputOffset; ///< (p)
    Vector low;          ///< (m)
    Vector high;         ///< (m)
    Vector integral;     ///< (q) at the start
    Vector applied;      ///< (m) at the start
};

/// What keeps references where inputs stay off their limits, T samples ahead; T = 0: none.
struct GovernorTable
{
    std::size_t samples; ///< T
    Matrix nearest;      ///< (m, p) steady inputs for a unit of reference
    Matrix gain;         ///< (p, m) steady outputs for a unit of input
    Matrix byState;      ///< (T m, n + q) inputs to come from [x; z]
    Matrix byReference;  ///< (T m, p) inputs to come from a constant reference
    Vector low;          ///< (m) deviations
    Vector high;         ///< (m)
};

/// Gains at points of one input; none: no schedule.
struct ScheduleTable
{
    Vector points;  ///< (k) rising
    Matrix factors; ///< (k, p) logarithms of the model's gain over the gain there
};

/// The outputs that the law is to see: r + factor (y - r); the factor's logarithm is interpolated.
inline Vector
Scheduled(const ScheduleTable& table, const Vector& measured, const Vector& reference, double applied)
{
    const Vector& points = table.points;
    if (points.empty())
    {
        return measured;
    }
    const double at = std::min(std::max(applied, points.front()), points.back());
    const auto above = static_cast<std::size_t>(std::upper_bound(points.begin(), points.end(), at) - points.begin());
    const std::size_t right = std::min(above, points.size() - 1);
    const std::size_t left = right == 0 ? 0 : right - 1;
    const double share = left == right ? 0.0 : (at - points[left]) / (points[right] - points[left]);
    Vector seen(measured.size());
    for (std::size_t i = 0; i < seen.size(); ++i)
    {
        const double one = table.factors.values[left * seen.size() + i];
        const double two = table.factors.values[right * seen.size() + i];
        seen[i] = reference[i] + std::exp(one + share * (two - one)) * (measured[i] - reference[i]);
    }
    return seen;
}

/// A law at work.
class Tracker
{
  public:
    Tracker(const TrackingTable& law, const GovernorTable& governor, const ScheduleTable& schedule)
        : m_law(law),
          m_governor(governor),
          m_schedule(schedule),
          m_estimate(law.A.rows, 0.0),
          m_integral(law.integral),
          m_applied(law.applied),
          m_commanded(law.applied),
          m_given(law.outputOffset)
    {
    }

    /// Inputs until the next sample, within their limits.
    const Vector& Applied() const
    {
        return m_applied;
    }

    /// The same before the limits.
    const Vector& Commanded() const
    {
        return m_commanded;
    }

    /// The reference that the law was given last.
    const Vector& Given() const
    {
        return m_given;
    }

    /// One sample: measured outputs and references, with their offsets.
    void Step(const Vector& measured, const Vector& wanted)
    {
        m_given = m_governor.samples == 0 ? wanted : Governed(wanted);
        const Vector shown = Scheduled(m_schedule, measured, m_given, m_applied[0]);
        const Vector y = Difference(shown, m_law.outputOffset);
        const Vector r = Difference(m_given, m_law.outputOffset);
        const Vector v = Difference(m_applied, m_law.inputOffset);
        const bool integrates = m_law.W.rows > 0;
        Vector innovation = integrates ? y : Difference(y, r);
        Add(innovation, -1.0, m_law.C, m_estimate);
        Add(innovation, -1.0, m_law.D, v);
        Add(m_integral, 1.0, m_law.W, Difference(r, y));
        Vector estimate(m_estimate.size(), 0.0);
        Add(estimate, 1.0, m_law.A, m_estimate);
        Add(estimate, 1.0, m_law.B, v);
        Add(estimate, 1.0, m_law.L, innovation);
        m_estimate = estimate;
        m_commanded = m_law.inputOffset;
        Add(m_commanded, -1.0, m_law.K, m_estimate);
        Add(m_commanded, -1.0, m_law.Kz, m_integral);
        m_applied = Clip(m_commanded, m_law.low, m_law.high);
        Add(m_integral, -1.0, m_law.back, Difference(m_applied, m_commanded));
    }

  private:
    /// As far from the last reference towards the nearest that can be had as inputs stay within their limits.
    Vector Governed(const Vector& wanted) const
    {
        const std::size_t m = m_law.low.size();
        const Vector start = Difference(m_given, m_law.outputOffset);
        Vector steady(m, 0.0);
        Add(steady, 1.0, m_governor.nearest, Difference(wanted, m_law.outputOffset));
        Vector goal(start.size(), 0.0);
        Add(goal, 1.0, m_governor.gain, Clip(steady, m_governor.low, m_governor.high));
        const Vector way = Difference(goal, start);
        Vector state = m_estimate;
        state.insert(state.end(), m_integral.begin(), m_integral.end());
        double share = 1.0;
        for (std::size_t t = 0; t < m_governor.samples; ++t)
        {
            Vector inputs(m, 0.0);
            Add(inputs, 1.0, m_governor.byState, state, t * m);
            Add(inputs, 1.0, m_governor.byReference, start, t * m);
            Vector change(m, 0.0);
            Add(change, 1.0, m_governor.byReference, way, t * m);
            for (std::size_t i = 0; i < m; ++i)
            {
                if (change[i] != 0.0)
                {
                    const double limit = change[i] > 0.0 ? m_governor.high[i] : m_governor.low[i];
                    share = std::min(share, (limit - inputs[i]) / change[i]);
                }
            }
        }
        share = std::max(share, 0.0);
        Vector found(start.size());
        for (std::size_t i = 0; i < found.size(); ++i)
        {
            found[i] = m_law.outputOffset[i] + start[i] + share * way[i];
        }
        return found;
    }

    const TrackingTable& m_law;
    const GovernorTable& m_governor;
    const ScheduleTable& m_schedule;
    Vector m_estimate;
    Vector m_integral;
    Vector m_applied;
    Vector m_commanded;
    Vector m_given;
};

} // namespace netctrl

#endif // NETCTRL_TRACKING_H
