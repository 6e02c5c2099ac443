"""`python -m netctrl.doctor`: see `netctrl.cli.doctor`."""

import sys

from netctrl.cli.doctor import main

if __name__ == "__main__":
    sys.exit(main())
