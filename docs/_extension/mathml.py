"""Formulas as MathML, which browsers show without a script and without a network."""

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")
"""Sizes of brackets, which MathML chooses by itself."""

_DIGITS = re.compile(r"(\\[dt]?frac)\s*(\d)\s*(\d)")
r"""Fractions such as ``\tfrac43``: docutils takes 43 for a number, TeX takes 4 over 3."""

_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer, which ``html_math_renderer`` chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(_converted(node, as_block=False))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="formula">{_converted(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _converted(node: nodes.Element, as_block: bool) -> str:
    """The formula of a node; one that cannot be converted is a warning, and its LaTeX is shown."""
    latex = node.astext()
    try:
        return tex2mathml(_DIGITS.sub(r"\1{\2}{\3}", _SIZES.sub("", latex)), as_block=as_block)
    except Exception as fault:  # docutils raises MathError, SyntaxError or what Python raises in its parser
        _LOG.warning("formula %r cannot be shown as MathML: %s", latex, fault, location=node)
        return f"<code>{html.escape(latex)}</code>"
