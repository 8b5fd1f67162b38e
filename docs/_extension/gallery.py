"""Pages from scripts, and the cards of the gallery that lead to them.

A card shows a loop; a reader whose browser asks for less motion sees a still picture in its place.
"""

import ast
import posixpath
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.addnodes import toctree
from sphinx.application import Sphinx

FOLDER = Path(__file__).resolve().parents[1] / "gallery"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the parser of scripts, and the directives ``gallery`` and ``loop``."""
    app.add_source_suffix(".py", "script")
    app.add_source_parser(ScriptParser)
    app.add_directive("gallery", Cards)
    app.add_directive("loop", Loop)
    app.add_node(Moving, html=(visit_moving, depart_moving))
    app.add_node(Film, html=(visit_film, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Moving(nodes.General, nodes.Element):
    """A `Film` and, after it, the image that takes its place where less motion is asked for."""


class Film(nodes.image):
    """A moving picture; as an image, Sphinx copies its file."""


def visit_moving(writer: Any, node: Moving) -> None:
    """Open the element within which a browser chooses."""
    writer.body.append("<picture>")


def depart_moving(writer: Any, node: Moving) -> None:
    """Close the element within which a browser chooses."""
    writer.body.append("</picture>")


def visit_film(writer: Any, node: Film) -> None:
    """Offer the moving picture to browsers that do not ask for less motion."""
    file = posixpath.join(writer.builder.imgpath, writer.builder.images[node["uri"]])
    writer.body.append(f'<source media="(prefers-reduced-motion: no-preference)" type="image/webp" srcset="{file}">')
    raise nodes.SkipNode


def moving(name: str, title: str) -> Moving:
    """The loop of a script, which is loaded when it comes into view."""
    still = nodes.image(uri=f"thumbnails/{name}.png", alt=title, loading="lazy")
    return Moving("", Film(uri=f"loops/{name}.webp", alt=title), still)


def title_and_text(script: Path) -> tuple[str, str]:
    """First line of a script's docstring without its full stop, and the rest."""
    title, _, text = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").partition("\n")
    return title.rstrip("."), text.strip()


class ScriptParser(MystParser):
    """A script as a page: title and text from its docstring, its loop and its picture, its code."""

    supported = ("script",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the page as Markdown."""
        script = Path(document["source"])
        title, text = title_and_text(script)
        shown = (
            f"```{{loop}} {script.stem}\n```\n\n" if (script.parent / "loops" / f"{script.stem}.webp").is_file() else ""
        )
        if (script.parent / "pictures" / f"{script.stem}.png").is_file():
            shown += f"![{title}](pictures/{script.stem}.png)\n\n"
        code = inputstring.split('"""', 2)[2].strip()
        super().parse(f"# {title}\n\n{text}\n\n{shown}```python\n{code}\n```\n", document)


class Loop(Directive):
    """The loop of the script whose name is the directive's argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A paragraph with the loop."""
        title, _ = title_and_text(FOLDER / f"{self.arguments[0]}.py")
        return [nodes.paragraph("", "", moving(self.arguments[0], title), classes=["loop"])]


class Cards(Directive):
    """Loops with titles that lead to scripts: their names are the directive's content, one a line."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """A container with one card for each name, and their entries in the list of all pages."""
        environment = self.state.document.settings.env
        cards = nodes.container(classes=["gallery"])
        names = [*filter(None, map(str.strip, self.content))]
        for name in names:
            script = FOLDER / f"{name}.py"
            environment.note_dependency(str(script))
            title, _ = title_and_text(script)
            link = nodes.reference("", "", internal=True, refuri=f"{name}.html")
            link += moving(name, title)
            link += nodes.inline("", title)
            cards += nodes.paragraph("", "", link)
        return [cards, nodes.compound("", listed(environment.docname, names), classes=["toctree-wrapper"])]


def listed(page: str, names: list[str]) -> toctree:
    """Scripts as pages below a section of a page beside them."""
    files = [posixpath.join(posixpath.dirname(page), name) for name in names]
    options = {"caption": None, "glob": False, "hidden": True, "includehidden": False, "titlesonly": True}
    entries = [(None, file) for file in files]
    return toctree("", parent=page, entries=entries, includefiles=files, maxdepth=1, numbered=0, **options)
