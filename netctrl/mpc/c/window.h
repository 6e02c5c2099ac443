/* Written by netctrl: MPCC, window of a data-centre sender in bytes, for 1 to @FLOWS@ flows@ONLY@.
 *
 * W = c - K Q within 0 and P_BD = @BDP@, and at most c - (Q - (N - 1) P_BD)/B. No allocation; bounded time. */
#ifndef @GUARD@_H
#define @GUARD@_H

#include <stdint.h>

@PROTOTYPE@

#endif
