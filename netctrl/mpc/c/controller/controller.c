/* Written by netctrl: see @NAME@.h. */
#include "@NAME@.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "@NAME@_program.h"
@INCLUDE@
/* States of the estimator, inputs, past inputs, disturbances, those measured before, and ahead; outputs, those ahead. */
enum { X = @STATES@, M = @INPUTS@, KEPT = @KEPTM@, W = @DISTURBANCES@, OLD = @OLD@, AHEAD = @AHEAD@ };
enum { Y = @MEASURED@, R = @REFERENCES@, S = X + KEPT + OLD * W + AHEAD * (W + R) };
enum { ESTIMATES = @ESTIMATING@, HOLD = @HOLD@ };

/* corrected = correct [estimate; past; first disturbance; measured]; next = advance [corrected; past; inputs; first
 * disturbance]. A program's parameters are [corrected; past; drawn; disturbances ahead; references ahead]. */
@TABLES@
static void times(double *out, const double *matrix, int rows, int columns, const double *x)
{
    for (int i = 0; i < rows; i++) {
        double sum = 0.0;
        for (int j = 0; j < columns; j++)
            sum += matrix[i * columns + j] * x[j];
        out[i] = sum;
    }
}

/* The safe input, or as far towards it as hard bounds of changes allow. */
static double towards(double applied, int j)
{
    const double wanted = safe[j] - input_offset[j], least = applied + least_change[j], most = applied + most_change[j];
    return wanted < least ? least : wanted > most ? most : wanted;
}

void @NAME@_start(struct @NAME@_state *state, const double applied[M])
{
    memset(state, 0, sizeof *state);
    for (int i = 0; i < KEPT; i++)
        state->past[i] = (applied != NULL ? applied[i % M] : safe[i % M]) - input_offset[i % M];
}

void @NAME@_applied(struct @NAME@_state *state, const double inputs[M])
{
    for (int j = 0; j < M; j++) {
        const double change = inputs[j] - input_offset[j] - state->past[KEPT - M + j];
        for (int i = 0; i < X && ESTIMATES; i++)
            state->estimate[i] += advance[i][X + KEPT + j] * change;
        state->past[KEPT - M + j] += change;
    }
}

int @NAME@(struct @NAME@_state *state, const double measured[Y], const double *references, const double *disturbances,
           double inputs[M])
{
    double signals[S], mix[X + KEPT + M + W + Y], first[W + 1], u[M];
    double *ahead = signals + X + KEPT + OLD * W;
    int seen = 1, code = 2;

    for (int i = 0; i < AHEAD * W; i++)
        ahead[i] = disturbances != NULL ? disturbances[i] - disturbance_offset[i % (W > 0 ? W : 1)] : 0.0;
    for (int i = 0; i < AHEAD * R; i++)
        ahead[AHEAD * W + i] =
            (references != NULL ? references[i] : reference[i % (R > 0 ? R : 1)]) - reference_offset[i % (R > 0 ? R : 1)];
    for (int i = 0; i < W; i++)
        first[i] = OLD > 0 ? state->drawn[i] : ahead[i];
    for (int i = 0; i < Y; i++)
        seen = seen && isfinite(measured[i]);
    if (!ESTIMATES) {
        for (int i = 0; i < X; i++)
            signals[i] = measured[i] - measured_offset[i];
    } else if (seen) {
        memcpy(mix, state->estimate, X * sizeof *mix);
        memcpy(mix + X, state->past, KEPT * sizeof *mix);
        memcpy(mix + X + KEPT, first, W * sizeof *mix);
        for (int i = 0; i < Y; i++)
            mix[X + KEPT + W + i] = measured[i] - measured_offset[i];
        times(signals, &correct[0][0], X, X + KEPT + W + Y, mix);
    } else {
        memcpy(signals, state->estimate, X * sizeof *signals);
    }
    memcpy(signals + X, state->past, KEPT * sizeof *signals);
    memcpy(signals + X + KEPT, state->drawn, OLD * W * sizeof *signals);
    if (seen) {
        code = @NAME@_program(signals, u, NULL) == 0 ? 0 : 2;
@FALLBACK@    }
    state->failing = code < 2 ? 0 : state->failing + 1;
    for (int j = 0; j < M; j++) {
        if (code == 2)
            u[j] = state->failing <= HOLD ? state->past[KEPT - M + j] : towards(state->past[KEPT - M + j], j);
        u[j] = u[j] < lower[j] ? lower[j] : u[j] > upper[j] ? upper[j] : u[j];
        inputs[j] = u[j] + input_offset[j];
    }
    if (ESTIMATES) {
        memcpy(mix, signals, (X + KEPT) * sizeof *mix);
        memcpy(mix + X + KEPT, u, M * sizeof *mix);
        memcpy(mix + X + KEPT + M, first, W * sizeof *mix);
        times(state->estimate, &advance[0][0], X, X + KEPT + M + W, mix);
    }
    memmove(state->past, state->past + M, (KEPT - M) * sizeof *u);
    memcpy(state->past + KEPT - M, u, sizeof u);
    if (OLD > 0) {
        memmove(state->drawn, state->drawn + W, (OLD - 1) * W * sizeof *u);
        memcpy(state->drawn + (OLD - 1) * W, ahead, W * sizeof *u);
    }
    return code == 2 && state->failing > HOLD ? 3 : code;
}
