/* Written by netctrl: model predictive control by a dual active-set method.
 *
 * minimum of v'Hv/2 + (g + F theta)'v subject to lower + E theta <= [v; A v] <= upper + E theta, in its dual: @ROWS@
 * bounded rows. Each iteration adds a bound to the active ones or removes one; more than @GUARD@_ITERATIONS are not made
 * (@CERTIFIED@). No allocation, no state, no recursion; safe in several threads at once. */
#ifndef @GUARD@_H
#define @GUARD@_H

#define @GUARD@_PARAMETERS @PARAMETERS@
#define @GUARD@_INPUTS @INPUTS@
#define @GUARD@_ITERATIONS @ITERATIONS@

/* First inputs u at theta. Returns 0: the minimum; 1: no point meets the bounds; 2: too many iterations. After 1 and 2 u
 * is that of the last iterate, which may exceed bounds. `iterations`, unless NULL, gets their number. */
int @NAME@(const double theta[@GUARD@_PARAMETERS], double u[@GUARD@_INPUTS], int *iterations);

#endif
