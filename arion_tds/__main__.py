"""`python -m arion_tds` and the console script."""

import sys

from arion_tds.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
