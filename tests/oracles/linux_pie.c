/* PIE of Linux from its description: a ladder of divisions, differences in 64 bits without sign, a sum of probabilities. */
#include "replay.h"

static const u64 ONE = UINT64_MAX / 256;
static struct { u64 target; u32 alpha, beta, limit; u64 ecn, bytemode, by_rate, percent; } law;
static struct { u64 p, delay, before, burst, sum, stamp, count; u32 rate, backlog; } now;

static u64 gain(u32 steps)
{
    u64 g = steps * (ONE / 15625000u) / 16;
    for (u32 part = 10; part <= 1000000; part *= 10)
        if (now.p < ONE / part) g /= part == 10 ? 2 : 4;
    return g;
}

static void forget(void)
{
    now.burst = 150000000 / 64; now.sum = 0; now.rate = 0;
    now.stamp = now.count = UINT64_MAX;
}

static void update(u32 backlog)
{
    u64 d = now.delay, before = now.before;
    if (law.by_rate) {
        before = now.before = now.delay;
        d = now.rate ? (u32)(backlog * 256u) / now.rate : 0;
    }
    int may_decay = d || !backlog;
    i64 step = (i64)(gain(law.alpha) * (d - law.target) + gain(law.beta) * (d - before));
    if (now.p >= ONE / 10 && step > (i64)(ONE / 50)) step = (i64)(ONE / 100 * 2);
    if (d > 250000000 / 64) step = (i64)((u64)step + ONE / 50);
    u64 p = now.p + (u64)step;
    if (step > 0 && p < now.p) { p = ONE; may_decay = 0; }
    if (step <= 0 && p > now.p) p = 0;
    if (may_decay && !d && !before) p -= p / 64;
    now.p = p; now.delay = d; now.backlog = backlog;
    u64 half = law.target / 2;
    if (!p && d < half && now.before < half && !(law.by_rate && !now.rate)) forget();
    if (!law.by_rate) now.before = d;
}

static void spend(u32 t) { now.burst = t < now.burst ? now.burst - t : 0; }

static void leaves(u64 t, u64 came, u32 size, u32 behind)
{
    if (!law.by_rate) {
        u32 passed = now.stamp == UINT64_MAX ? 0 : (u32)(t - now.stamp);
        now.delay = behind ? t - came : 0;
        now.stamp = t;
        spend(passed);
        return;
    }
    if (now.count == UINT64_MAX && behind >= 16384) { now.stamp = t; now.count = 0; }
    if (now.count == UINT64_MAX) return;
    now.count += size;
    u32 passed = (u32)(t - now.stamp);
    if (now.count < 16384 || !passed) return;
    u32 rate = (u32)(now.count * 256) / passed;
    now.rate = now.rate ? now.rate - now.rate / 8 + rate / 8 : rate;
    if (behind < 16384) now.count = UINT64_MAX;
    else { now.count = 0; now.stamp = t; }
    spend(passed);
}

static int chosen(u32 backlog, u32 size, u32 mtu, u64 draw)
{
    if (now.burst || (now.p < ONE / 5 && now.delay < law.target / 2) || backlog < 2 * mtu) return 0;
    u64 p = law.bytemode && size <= mtu ? size * (now.p / mtu) : now.p;
    now.sum = p ? now.sum + p : 0;
    if (now.sum < ONE / 100 * 85) return 0;
    if (now.sum >= ONE / 2 * 17) return 1;
    if (draw / 256 >= p) return 0;
    now.sum = 0;
    return 1;
}

static u64 comes(u32 packets, u32 backlog, u32 size, u32 mtu, u64 draw, u64 ect)
{
    if (packets < law.limit) {
        if (!chosen(backlog, size, mtu, draw)) return 0;
        if (law.ecn && ect && now.p <= ONE * law.percent / 100) return 1;
    }
    now.sum = 0;
    return 2;
}

static void replay(const u64 *in, u64 *out)
{
    const u64 *v = in + 1;
    if (in[0] == 0) {
        law.target = v[0]; law.alpha = (u32)v[1]; law.beta = (u32)v[2]; law.limit = (u32)v[3];
        law.ecn = v[4]; law.bytemode = v[5]; law.by_rate = v[6]; law.percent = v[7];
        now.p = v[8]; now.delay = v[9]; now.before = v[10]; now.burst = v[11]; now.sum = v[12];
        now.stamp = v[13]; now.count = v[14]; now.rate = (u32)v[15]; now.backlog = (u32)v[16];
    }
    if (in[0] == 1) update((u32)v[0]);
    if (in[0] == 2) leaves(v[0], v[1], (u32)v[2], (u32)v[3]);
    if (in[0] == 4) now.delay = v[0];
    if (in[0] == 3) out[9] = comes((u32)v[0], (u32)v[1], (u32)v[2], (u32)v[3], v[4], v[5]);
    out[0] = now.p; out[1] = now.delay; out[2] = now.before; out[3] = now.burst; out[4] = now.sum;
    out[5] = now.stamp; out[6] = now.count; out[7] = now.rate; out[8] = now.backlog;
}
