/* Written by netctrl: see @NAME@.h. */
#include "@NAME@.h"

#include <math.h>

enum { Q = @PARAMETERS@, M = @INPUTS@ };

/* t = (theta - centre)/half is in [-1, 1]. Node i of the tree: split, value, children; a child of -1 - l is the leaf l,
 * with the regions leaf[leaf_first[l]] to leaf[leaf_first[l + 1] - 1]. Region r: rows[k] t <= right[k] for k from
 * first[r] to first[r + 1] - 1; u = gain[r] t + offset[r]. */
@TABLES@
int @NAME@(const double theta[@GUARD@_PARAMETERS], double u[@GUARD@_INPUTS])
{
    double t[Q];
    int32_t node = @ROOT@;

    for (int j = 0; j < M; j++)
        u[j] = 0.0;
    for (int i = 0; i < Q; i++) {
        t[i] = (theta[i] - centre[i]) / half[i];
        if (!(fabs(t[i]) <= 1.0 + @TOLERANCE@))
            return 1;
    }
    while (node >= 0) {
        double at = -value[node];
        for (int i = 0; i < Q; i++)
            at += split[node][i] * t[i];
        node = child[node][at > 0.0];
    }
    for (int32_t place = leaf_first[-1 - node]; place < leaf_first[-node]; place++) {
        const int32_t r = leaf[place];
        int32_t k = first[r];
        for (; k < first[r + 1]; k++) {
            double at = 0.0;
            for (int i = 0; i < Q; i++)
                at += rows[k][i] * t[i];
            if (at > right[k] + @TOLERANCE@)
                break;
        }
        if (k == first[r + 1]) {
            for (int j = 0; j < M; j++) {
                u[j] = offset[r][j];
                for (int i = 0; i < Q; i++)
                    u[j] += gain[r][j][i] * t[i];
            }
            return 0;
        }
    }
    return 1;
}
