/* Written by netctrl: model predictive control from measurements to inputs, sample by sample.
 *
 * @TITLE@
 *
 * Values are in the units of the design. The functions allocate nothing; all that is kept from one sample to the next is
 * in a struct of the caller's. */
#ifndef @GUARD@_H
#define @GUARD@_H

#define @GUARD@_INTERVAL @INTERVAL@ /* seconds between samples */

enum {
    @GUARD@_MEASURED = @MEASURED@,         /* @MEASURES@ */
    @GUARD@_REFERENCES = @REFERENCES@,     /* @FOLLOWS@ */
    @GUARD@_DISTURBANCES = @DISTURBANCES@, /* @DISTURBS@ */
    @GUARD@_AHEAD = @AHEAD@,               /* samples of references and disturbances from now on */
    @GUARD@_INPUTS = @INPUTS@              /* @SETS@ */
};

struct @NAME@_state {
    double estimate[@ESTIMATES@]; /* of the plant's state and its disturbances */
    double past[@KEPT@];          /* inputs, the oldest first */
    double drawn[@DRAWN@];        /* disturbances measured before, the oldest first */
    int failing;                  /* samples in a row without a plan */
};

/* Before the first sample: inputs that have been applied for long, or NULL for the safe ones. */
void @NAME@_start(struct @NAME@_state *state, const double applied[@GUARD@_INPUTS]);

/* Inputs of this sample. References and disturbances are @GUARD@_AHEAD rows each; NULL stands for those of the design and
 * for none. Returns 0: a plan of the proved kind; 1: a plan that ends outside the terminal set; 2: none, the last inputs
 * are held; 3: none for longer than @HOLD@ samples, the safe inputs are taken. */
int @NAME@(struct @NAME@_state *state, const double measured[@GUARD@_MEASURED], const double *references,
           const double *disturbances, double inputs[@GUARD@_INPUTS]);

/* What was applied after all, where it isn't what the last sample decided: call it before the next one. */
void @NAME@_applied(struct @NAME@_state *state, const double inputs[@GUARD@_INPUTS]);

#endif
