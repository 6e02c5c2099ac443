/* Written by netctrl: see @NAME@.h.
 *
 * Dual method of Goldfarb and Idnani (Math. Programming 27 (1983) 1-33) on the Gram matrix of the bounded rows, with
 * factors L D L' of its active part (Arnstrom, Bemporad, Axehill, IEEE Trans. Automatic Control 67 (2022) 4362-4369). */
#include "@NAME@.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Parameters, inputs, bounded rows, active rows at most. */
enum { Q = @PARAMETERS@, M = @INPUTS@, K = @ROWS@, N = @ACTIVE@ };

/* Rows are scaled so that gram[i][i] = 1. Without bounds row i is base[i] + slope[i] theta; with multipliers y, above 0
 * at an upper bound, gram[i] y is taken off it, and u = input + input_slope theta - input_pull y. */
@TABLES@
static const double tolerance = 1e-10; /* of a bound, relative to 1 and to its size */
static const double dependent = 1e-11; /* squared sine of the angle between a row and the active ones */

struct active {
    int count;
    int row[N];
    double side[N]; /* 1 at an upper bound, -1 at a lower one */
    double y[N];    /* multipliers */
    double d[N];    /* factors of the Gram matrix of the active rows */
    double l[N][N]; /* below the diagonal, which is 1 */
};

/* x with L D L' x = x; only L x = x where `half`. */
static void solve(const struct active *a, double x[N], int half)
{
    for (int i = 0; i < a->count; i++) {
        double sum = x[i];
        for (int j = 0; j < i; j++)
            sum -= a->l[i][j] * x[j];
        x[i] = sum;
    }
    if (half)
        return;
    for (int i = 0; i < a->count; i++)
        x[i] /= a->d[i];
    for (int i = a->count - 1; i > 0; i--) /* by rows, which lie together */
        for (int j = 0; j < i; j++)
            x[j] -= a->l[i][j] * x[i];
}

/* Factors without the row at place `out`. */
static void leave(struct active *a, int out)
{
    double w[N], scale = a->d[out];

    for (int i = out + 1; i < a->count; i++)
        w[i] = a->l[i][out];
    for (int j = out; j < a->count - 1; j++) {
        /* Row j + 1 moves to place j, and w w' scale is added to what is below. */
        const double old = a->d[j + 1], p = w[j + 1], now = old + scale * p * p, factor = scale * p / now;
        a->row[j] = a->row[j + 1];
        a->side[j] = a->side[j + 1];
        a->y[j] = a->y[j + 1];
        for (int i = 0; i < out; i++)
            a->l[j][i] = a->l[j + 1][i];
        scale *= old / now;
        a->d[j] = now;
        for (int i = j + 2; i < a->count; i++) {
            w[i] -= p * a->l[i][j + 1];
            a->l[i - 1][j] = a->l[i][j + 1] + factor * w[i];
        }
    }
    a->count--;
}

/* Multipliers with which all active rows are at their bounds, refined once. */
static void settle(struct active *a, const double free_[K], const double bound[K])
{
    double x[N];

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < a->count; i++) {
            const double *gram_i = gram[a->row[i]];
            x[i] = free_[a->row[i]] - bound[a->row[i]];
            for (int j = 0; j < a->count && pass > 0; j++)
                x[i] -= gram_i[a->row[j]] * a->y[j];
        }
        solve(a, x, 0);
        for (int i = 0; i < a->count; i++)
            a->y[i] = pass > 0 ? a->y[i] + x[i] : x[i];
    }
}

int @NAME@(const double theta[@GUARD@_PARAMETERS], double u[@GUARD@_INPUTS], int *iterations)
{
    struct active a;
    double free_[K], bound[K], least[K], most[K], r[N], l[N];
    double excess = 0.0, y = 0.0, sign = 0.0;
    int entering = -1, status = 2, turn = 0, settled = 0;

    a.count = 0;
    for (int i = 0; i < K; i++) {
        free_[i] = base[i];
        bound[i] = 0.0;
        least[i] = low[i] - tolerance * (1.0 + fabs(low[i]));
        most[i] = high[i] + tolerance * (1.0 + fabs(high[i]));
        for (int j = 0; j < Q; j++)
            free_[i] += slope[i][j] * theta[j];
    }
    for (; turn < @GUARD@_ITERATIONS; turn++) {
        double curvature, step, full, reach = 1.0;
        int out = -1, independent;
        if (entering < 0) {
            double worst = 0.0;
            double row[K];
            for (int i = 0; i < K; i++)
                row[i] = free_[i];
            for (int j = 0; j < a.count; j += 4) { /* four at a time: half of the work is to load and store */
                const double *g[4];
                double each[4];
                for (int k = 0; k < 4; k++) {
                    g[k] = gram[a.row[j + k < a.count ? j + k : j]];
                    each[k] = j + k < a.count ? a.y[j + k] : 0.0;
                }
                for (int i = 0; i < K; i++)
                    row[i] -= g[0][i] * each[0] + g[1][i] * each[1] + (g[2][i] * each[2] + g[3][i] * each[3]);
            }
            for (int j = 0; j < a.count; j++)
                row[a.row[j]] = bound[a.row[j]];
            for (int i = 0; i < K; i++) {
                const double above = row[i] - most[i], below = least[i] - row[i];
                if (above > worst || below > worst) {
                    entering = i;
                    sign = above > below ? 1.0 : -1.0;
                    worst = above > below ? above : below;
                }
            }
            if (entering < 0 && !settled) { /* all again without the rounding of the steps */
                settle(&a, free_, bound);
                settled = 1;
                turn--;
                continue;
            }
            if (entering < 0) {
                status = 0;
                break;
            }
            settled = 0;
            bound[entering] = sign > 0.0 ? high[entering] : low[entering];
            excess = sign * (row[entering] - bound[entering]);
            y = 0.0;
        }
        /* As the multiplier grows by sign step, the active ones change by -sign step r, so that their rows stay. */
        for (int i = 0; i < a.count; i++)
            l[i] = gram[entering][a.row[i]];
        solve(&a, l, 1);
        curvature = gram[entering][entering];
        for (int i = 0; i < a.count; i++) {
            r[i] = l[i];
            l[i] /= a.d[i];
            curvature -= r[i] * l[i];
        }
        memcpy(r, l, a.count * sizeof *r);
        for (int i = a.count - 1; i > 0; i--)
            for (int j = 0; j < i; j++)
                r[j] -= a.l[i][j] * r[i];
        for (int i = 0; i < a.count; i++)
            reach += fabs(r[i]);
        independent = a.count < N && curvature > dependent + 1e-14 * reach * reach; /* the latter from rounding */
        full = independent ? excess / curvature : HUGE_VAL;
        step = full;
        for (int i = 0; i < a.count; i++) {
            const double size = a.side[i] * a.y[i], falls = sign * a.side[i] * r[i];
            if (falls > 1e-12 && !equality[a.row[i]] && size < step * falls) {
                step = size > 0.0 ? size / falls : 0.0; /* below 0 by rounding */
                out = i;
            }
        }
        if (isinf(step)) {
            status = 1;
            break;
        }
        for (int i = 0; i < a.count; i++)
            a.y[i] -= sign * step * r[i];
        y += sign * step;
        if (out >= 0) {
            excess -= independent ? step * curvature : 0.0;
            leave(&a, out);
        } else if (a.count < N) { /* as for any independent row */
            for (int i = 0; i < a.count; i++)
                a.l[a.count][i] = l[i];
            a.d[a.count] = curvature;
            a.row[a.count] = entering;
            a.side[a.count] = sign;
            a.y[a.count++] = y;
            entering = -1;
        }
    }
    for (int j = 0; j < M; j++) {
        u[j] = input[j];
        for (int i = 0; i < Q; i++)
            u[j] += input_slope[j][i] * theta[i];
        for (int i = 0; i < a.count; i++)
            u[j] -= input_pull[j][a.row[i]] * a.y[i];
    }
    if (iterations != NULL)
        *iterations = turn + (status != 2);
    return status;
}
