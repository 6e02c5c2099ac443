/* A program that replays rows of unsigned 64-bit numbers with `replay`, which may keep a state. */
#include <stdint.h>
#include <stdio.h>
typedef uint32_t u32; typedef uint64_t u64; typedef int64_t i64;

static void replay(const u64 *in, u64 *out);

int main(void)
{
    u64 in[TAKES], out[GIVES];
    while (fread(in, sizeof in, 1, stdin) == 1) {
        for (int k = 0; k < GIVES; k++) out[k] = 0;
        replay(in, out);
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
