// Vectors, matrices and tables of laws that are printed from Python, with the functions of numpy that these use. C++17.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <valarray>
#include <vector>

namespace netctrl
{

using Vector = std::valarray<double>;

/// Row by row.
struct Matrix
{
    std::size_t rows = 0;
    std::size_t columns = 0;
    Vector values;

    Vector operator[](int64_t row) const
    {
        return values[std::slice(static_cast<std::size_t>(row) * columns, columns, 1)];
    }
};

inline Vector
operator*(const Matrix& M, const Vector& x)
{
    Vector found(M.rows);
    for (std::size_t i = 0; i < M.rows; ++i)
    {
        for (std::size_t j = 0; j < M.columns; ++j)
        {
            found[i] += M.values[i * M.columns + j] * x[j];
        }
    }
    return found;
}

inline Vector
Clip(const Vector& x, const Vector& low, const Vector& high)
{
    Vector found(x);
    for (std::size_t i = 0; i < x.size(); ++i)
    {
        found[i] = std::min(std::max(x[i], low[i]), high[i]);
    }
    return found;
}

inline Vector
Where(const std::valarray<bool>& condition, const Vector& one, const Vector& other)
{
    Vector found(one);
    for (std::size_t i = 0; i < one.size(); ++i)
    {
        found[i] = condition[i] ? one[i] : other[i];
    }
    return found;
}

inline Vector
Where(const std::valarray<bool>& condition, const Vector& one, double other)
{
    return Where(condition, one, Vector(other, one.size()));
}

inline Vector
Concatenate(const Vector& one, const Vector& other)
{
    Vector found(one.size() + other.size());
    std::copy(std::begin(one), std::end(one), std::begin(found));
    std::copy(std::begin(other), std::end(other), std::begin(found) + static_cast<std::ptrdiff_t>(one.size()));
    return found;
}

/// The numbers of x again and again.
inline Vector
Resize(const Vector& x, int64_t size)
{
    Vector found(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < found.size(); ++i)
    {
        found[i] = x[i % x.size()];
    }
    return found;
}

/// A table that is looked up, row by row.
template <class Value>
struct Grid
{
    int64_t columns = 0;
    std::vector<Value> values;

    Value& operator()(int64_t row, int64_t column)
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }

    const Value& operator()(int64_t row, int64_t column) const
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
};

} // namespace netctrl
