/* Written by netctrl: see @NAME@.h. Integers only. */
#include "@NAME@.h"

/* By number of flows, from @FIRST@ on: K in units of 2^-@GAIN_BITS@, c in units of 2^-@GAIN_BITS@ bytes, 1/B in units of
 * 2^-@INVERSE_BITS@, and the excess of the queue from which the window is 0. */
@TABLES@
static const int64_t bdp = @BDP@;

uint32_t @NAME@(uint32_t queue, int32_t flows)
{
    const int32_t last = (int32_t)(sizeof gain / sizeof gain[0]) - 1;
    const int32_t at = flows - @FIRST@, n = at < 0 ? 0 : at > last ? last : at;
    const int64_t above = (int64_t)queue - (n + @FIRST@ - 1) * bdp;
    int64_t window = fair[n] - gain[n] * (int64_t)queue;

    window = window <= 0 ? 0 : (window + (INT64_C(1) << @GAIN_BITS@) / 2) >> @GAIN_BITS@;
    if (above >= empty[n])
        window = 0;
    else if (above > 0) {
        const int64_t most = (fair[n] >> @GAIN_BITS@) - ((above * inverse[n]) >> @INVERSE_BITS@);
        window = most < window ? (most < 0 ? 0 : most) : window;
    }
    return (uint32_t)(window > bdp ? bdp : window);
}
