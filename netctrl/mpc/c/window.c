/* Written by netctrl: see @NAME@.h. */
#include "@NAME@.h"

/* By number of flows, from @FIRST@ on. */
@TABLES@
static const double bdp = @BDP@;

static int32_t entry(int32_t flows)
{
    const int32_t last = (int32_t)(sizeof gain / sizeof gain[0]) - 1;
    const int32_t at = flows - @FIRST@;
    return at < 0 ? 0 : at > last ? last : at;
}

double @NAME@(double queue, int32_t flows)
{
    const int32_t n = entry(flows);
    const double above = queue - (n + @FIRST@ - 1) * bdp;
    double window = fair[n] - gain[n] * queue;

    if (above > 0.0 && fair[n] - above / input_gain[n] < window)
        window = fair[n] - above / input_gain[n];
    return window < 0.0 ? 0.0 : window > bdp ? bdp : window;
}

#ifdef @GUARD@_DELAY
double @NAME@_delayed(struct @NAME@_state *state, double queue, int32_t flows)
{
    const int32_t n = entry(flows);
    double predicted = queue;
    uint32_t place = (state->place + @GUARD@_DELAY - state->count) % @GUARD@_DELAY;

    for (uint32_t i = 0; i < state->count; i++) { /* the windows under way, oldest first */
        predicted += input_gain[n] * (state->memory[place] - fair[n]);
        predicted = predicted < 0.0 ? 0.0 : predicted;
        place = place + 1 == @GUARD@_DELAY ? 0 : place + 1;
    }
    predicted = @NAME@(predicted, flows);
    state->memory[state->place] = predicted;
    state->place = state->place + 1 == @GUARD@_DELAY ? 0 : state->place + 1;
    state->count += state->count < @GUARD@_DELAY;
    return predicted;
}
#endif
