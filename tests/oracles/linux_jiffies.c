/* Jiffies from microseconds and back, with the kernel's reciprocals. */
#include "replay.h"

static void replay(const u64 *in, u64 *out)
{
    u64 hz = in[0], t = in[1];
    out[1] = (u32)(in[2] * (1000000 / in[3]) / (hz / in[3]));
    if (1000000 % hz == 0) { u64 tick = 1000000 / hz; out[0] = t / tick + (t % tick != 0); return; }
    out[0] = (in[4] * t + in[5]) >> in[6];
}
