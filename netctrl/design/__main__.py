"""`python -m netctrl.design`: `netctrl design` as the papers' users know it."""

import sys

from netctrl.core.register import VERBS

if __name__ == "__main__":
    sys.exit(VERBS["design"]())
