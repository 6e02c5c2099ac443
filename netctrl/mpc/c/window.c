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
