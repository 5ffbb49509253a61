"""The command of the package: nfstuned beside this file, its libraries in the folder `vendor`."""

import os
import sys

sys.path.insert(1, os.path.join(sys.path[0], "vendor"))

from nfstuned.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
