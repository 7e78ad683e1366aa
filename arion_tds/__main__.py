"""`python -m arion_tds` and the console script."""

import os
import sys

# Before the libraries that read them are loaded; whoever sets them knows better.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its lines would stand between ours: the xDS client says what happened
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # its fork handlers can crash a child before it reaches exec
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one vector product does not need a pool of threads

from arion_tds.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
