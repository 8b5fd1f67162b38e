"""Run tutorials and store them with their outputs: ``python tutorials/store.py [NAME.ipynb ...]``; all without a name.

Every motion has its picture; the last one of each notebook has a player, too, which takes up to a megabyte. Pictures
have at most 256 colours.
"""

import base64
import io
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from warpbots.view.color_reduction import png_of

FOLDER = Path(__file__).parent


def store(path: Path) -> None:
    """Run a notebook and replace it."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    for output in [o for o in outputs if "<iframe" in o.get("data", {}).get("text/html", "")][:-1]:
        del output.data["text/html"]
    for output in outputs:
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = few_colors(output.data["image/png"])
            output.data.pop("image/jpeg", None)  # the same picture once more
    for cell in cells:
        cell.metadata.pop("execution", None)  # times of this run
        cell.outputs = [o for o in cell.outputs if not _about_compilation(o)]
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


def few_colors(png: str) -> str:
    """A picture in base64 with at most 256 colours: a third of the size, and the same to the eye."""
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(png)))
    if image.mode == "P":
        return png
    image = image.convert("RGBA")
    return png_of(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB"))


def _about_compilation(output: nbformat.NotebookNode) -> bool:
    """Whether an output only says how long kernels were compiled on this machine."""
    text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
    return text.startswith("warpbots: first run of kernels") and text.count("\n") <= 1


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if len(sys.argv) > 1 else sorted(FOLDER.glob("*.ipynb")):
        print(path.name, flush=True)
        store(path)
