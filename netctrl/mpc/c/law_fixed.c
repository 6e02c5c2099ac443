/* Written by netctrl: see @NAME@.h. Integers only. */
#include "@NAME@.h"

enum { Q = @PARAMETERS@, M = @INPUTS@ };

/* As in floating point, with t, split, rows in units of 2^-30, value, right in units of 2^-60; gain in units of
 * 2^(shift - 30), offset of 2^(shift - 60). No sum exceeds 2^63 with up to 15
 * parameters. */
@TABLES@
static const int64_t tolerance = @TOLERANCE@;

int @NAME@(const int32_t t[@GUARD@_PARAMETERS], int32_t u[@GUARD@_INPUTS])
{
    int32_t node = @ROOT@;

    for (int j = 0; j < M; j++)
        u[j] = 0;
    for (int i = 0; i < Q; i++)
        if (t[i] > (INT32_C(1) << 30) || t[i] < -(INT32_C(1) << 30))
            return 1;
    while (node >= 0) {
        int64_t at = -value[node];
        for (int i = 0; i < Q; i++)
            at += (int64_t)split[node][i] * t[i];
        node = child[node][at > 0];
    }
    for (int32_t place = leaf_first[-1 - node]; place < leaf_first[-node]; place++) {
        const int32_t r = leaf[place];
        int32_t k = first[r];
        for (; k < first[r + 1]; k++) {
            int64_t at = 0;
            for (int i = 0; i < Q; i++)
                at += (int64_t)rows[k][i] * t[i];
            if (at > right[k] + tolerance)
                break;
        }
        if (k == first[r + 1]) {
            for (int j = 0; j < M; j++) {
                const int64_t unit = INT64_C(1) << (30 - shift[r][j]);
                int64_t at = offset[r][j];
                for (int i = 0; i < Q; i++)
                    at += (int64_t)gain[r][j][i] * t[i];
                at = at >= 0 ? (at + unit / 2) / unit : -((unit / 2 - at) / unit);
                u[j] = (int32_t)(at > INT32_MAX ? INT32_MAX : at < -INT32_MAX ? -INT32_MAX : at);
            }
            return 0;
        }
    }
    return 1;
}
