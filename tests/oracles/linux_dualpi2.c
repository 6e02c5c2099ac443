/* DualPI2 of Linux from its description: gains of 32 bits, a change of 64 bits with sign, a probability of 32 bits. */
#include "replay.h"

static struct { u64 target; u32 alpha, beta; u64 k, may_drop; } law;
static struct { u32 p; u64 delay; } now;

static u32 keep(u64 n) { return (u32)(n * UINT32_MAX / 4 / 1000000000); }
static u64 report(u64 kept) { return kept * 4000000000u / UINT32_MAX; }

static void update(u64 delay)
{
    i64 error = (i64)(delay - law.target), rise = (i64)(delay - now.delay);
    i64 change = error * law.alpha + rise * law.beta;
    u64 size = (change > 0 ? (u64)change : 0 - (u64)change) / 64;
    u32 p = change > 0 ? now.p + (u32)size : now.p - (u32)size;
    if (change > 0 && p < now.p) p = UINT32_MAX;
    if (change <= 0 && p > now.p) p = 0;
    if (!law.may_drop && p > UINT32_MAX / law.k) p = (u32)(UINT32_MAX / law.k);
    now.p = p; now.delay = delay;
}

static void replay(const u64 *in, u64 *out)
{
    const u64 *v = in + 1;
    if (in[0] == 0) {
        law.target = v[0] * 1000; law.alpha = keep(v[1]); law.beta = keep(v[2]); law.k = v[3]; law.may_drop = v[4];
        now.p = (u32)v[5]; now.delay = v[6];
    }
    if (in[0] == 1) update(v[0]);
    out[0] = now.p; out[1] = now.delay; out[2] = report(law.alpha); out[3] = law.beta;
}
