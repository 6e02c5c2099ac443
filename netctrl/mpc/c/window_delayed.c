
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
