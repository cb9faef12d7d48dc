"""`python -m attnbook` opens the book in JupyterLab; see `attnbook.launcher.command`."""

import sys

from attnbook.launcher.command import main

if __name__ == "__main__":
    sys.exit(main())
