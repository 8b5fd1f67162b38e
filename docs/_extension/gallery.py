"""Pages from scripts, and the cards of the gallery that lead to them."""

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

FOLDER = Path(__file__).resolve().parents[1] / "gallery"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the parser of scripts and the directive ``gallery``."""
    app.add_source_suffix(".py", "script")
    app.add_source_parser(ScriptParser)
    app.add_directive("gallery", Cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def title_and_text(script: Path) -> tuple[str, str]:
    """First line of a script's docstring without its full stop, and the rest."""
    title, _, text = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").partition("\n")
    return title.rstrip("."), text.strip()


class ScriptParser(MystParser):
    """A script as a page: title and text from its docstring, its picture, its code."""

    supported = ("script",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the page as Markdown."""
        script = Path(document["source"])
        title, text = title_and_text(script)
        picture = script.parent / "pictures" / f"{script.stem}.png"
        shown = f"![{title}](pictures/{picture.name})\n\n" if picture.is_file() else ""
        code = inputstring.split('"""', 2)[2].strip()
        super().parse(f"# {title}\n\n{text}\n\n{shown}```python\n{code}\n```\n", document)


class Cards(Directive):
    """Thumbnails with titles that lead to scripts: their names are the directive's content, one a line."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """A container with one card for each name."""
        cards = nodes.container(classes=["gallery"])
        for name in filter(None, map(str.strip, self.content)):
            script = FOLDER / f"{name}.py"
            self.state.document.settings.env.note_dependency(str(script))
            title, _ = title_and_text(script)
            link = nodes.reference("", "", internal=True, refuri=f"{name}.html")
            link += nodes.image(uri=f"thumbnails/{name}.png", alt=title)
            link += nodes.inline("", title)
            cards += nodes.paragraph("", "", link)
        return [cards]
