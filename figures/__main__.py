"""Rebuild every figure: ``python figures``."""

import runpy
from pathlib import Path

for script in sorted(Path(__file__).parent.glob("[0-9][0-9]_*.py")):
    runpy.run_path(str(script), run_name="__main__")
    print(script.with_suffix(".svg").name)
