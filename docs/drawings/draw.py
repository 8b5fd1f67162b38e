"""Make the drawings of the site again: ``python docs/drawings/draw.py [NAME ...]``; all without a name.

Each drawing is a file ``NAME.py`` with a function ``draw``, and ``NAME.svg`` lies beside it. Drawings that tutorials
show lie beside these, too: a server of notebooks that was started in their folder shows no file above it.
"""

import re
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SHARED = {"canvas", "draw"}


def names() -> list[str]:
    """All drawings."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


def files(name: str) -> list[Path]:
    """Where a drawing lies."""
    notebooks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tutorials").glob("*.ipynb"))
    shown = re.search(rf"\]\(drawings/{name}\.svg\)", notebooks)
    return [FOLDER / f"{name}.svg"] + [ROOT / "tutorials" / "drawings" / f"{name}.svg"] * bool(shown)


def text(name: str) -> str:
    """The SVG of a drawing."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))["draw"]().svg()


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        svg = text(name)
        for path in files(name):
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, encoding="utf-8", newline="\n")
            print(path.relative_to(ROOT), len(svg))
