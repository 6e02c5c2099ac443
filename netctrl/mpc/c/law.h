/* Written by netctrl: an explicit law of model predictive control.
 *
 * At most @TESTS@ tests on which side of a hyperplane a point is, then one affine law: @FLOPS@ multiplications.
 * No allocation, no state, no recursion; safe in several threads at once. */
#ifndef @GUARD@_H
#define @GUARD@_H

#include <stdint.h>

#define @GUARD@_PARAMETERS @PARAMETERS@
#define @GUARD@_INPUTS @INPUTS@

@PROTOTYPE@

#endif
