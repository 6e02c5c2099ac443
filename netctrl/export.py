"""`python -m netctrl.export`: see `netctrl.cli.export.verb`."""

import sys

from netctrl.cli.export.verb import main

if __name__ == "__main__":
    sys.exit(main())
