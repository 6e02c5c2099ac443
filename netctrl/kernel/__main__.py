"""`python -m netctrl.kernel`: see `netctrl.cli.kernel`."""

import sys

from netctrl.cli.kernel import main

if __name__ == "__main__":
    sys.exit(main())
