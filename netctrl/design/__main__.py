"""`python -m netctrl.design`: see `netctrl.cli.design.verb`."""

import sys

from netctrl.cli.design.verb import main

if __name__ == "__main__":
    sys.exit(main())
