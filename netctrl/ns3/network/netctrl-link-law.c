/* A link's rate by a law that netctrl wrote as C (link_rate.c), for the program: `make law.so`. Mbit, and Mbit/s. */
#include "link_rate.h"

#include <stddef.h>

static struct link_rate_state state;

const int netctrl_ahead = LINK_RATE_AHEAD; /* intervals of arrivals that a decision takes */

void netctrl_start(double rate)
{
    link_rate_start(&state, &rate);
}

double netctrl_decide(const double *backlog, const double *arrivals)
{
    double rate;

    link_rate(&state, backlog, NULL, arrivals, &rate);
    return rate;
}
