/* RED of Linux from its description; divisions by a reciprocal (Granlund, Montgomery, "Division by invariant integers
   using multiplication", 1994, Figure 4.1). */
#include "replay.h"

static struct { u32 low, high, m; int w; } law;
static struct { u64 mean; i64 count; u32 kept; } now;

static u32 quotient(u32 n, u32 d)
{
    int l = 0;
    while (l < 32 && (1ull << l) < d) l++;
    u32 magic = (u32)((((1ull << l) - d) << 32) / d + 1);
    u32 t = (u32)((u64)magic * n >> 32);
    return (u32)((t + (u64)((n - t) >> (l > 0))) >> (l > 1 ? l - 1 : 0));
}

static u64 arrives(u32 backlog, u32 draw)
{
    now.mean = now.mean - (now.mean >> law.w) + backlog;
    if (now.mean < law.low) { now.count = -1; return 0; }
    if (now.mean >= law.high) { now.count = -1; return 2; }
    if (++now.count == 0) { now.kept = quotient(draw, law.m); return 0; }
    if (((now.mean - law.low) >> law.w) * (u64)now.count < now.kept) return 0;
    now.count = 0; now.kept = quotient(draw, law.m);
    return 1;
}

static void replay(const u64 *in, u64 *out)
{
    const u64 *v = in + 1;
    if (in[0] == 0) {
        u32 width = v[1] > v[0] ? (u32)(v[1] - v[0]) : 1;
        law.w = (int)v[2]; law.low = (u32)v[0] << law.w; law.high = (u32)v[1] << law.w;
        law.m = (u32)v[3] / width ? (u32)v[3] / width : 1;
        now.mean = v[4]; now.count = (i64)v[5]; now.kept = (u32)v[6];
    } else out[3] = arrives((u32)v[0], (u32)v[1]);
    out[0] = now.mean; out[1] = (u64)now.count; out[2] = now.kept;
}
