"""`python -m everstep`."""

import sys

from everstep.cli.main import main

sys.exit(main())
