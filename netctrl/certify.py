"""`python -m netctrl.certify`: see `netctrl.cli.certify`."""

import sys

from netctrl.cli.certify import main

if __name__ == "__main__":
    sys.exit(main())
