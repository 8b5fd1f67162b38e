"""Formulas as MathML, which browsers show without a script and without a network.

docutils converts TeX; `typeset` corrects its faults, as TeX would set the formula. ``docs/_static/fonts`` has the font.
"""

import html
import itertools
import re
import xml.etree.ElementTree as ET
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])\s*(\\[lr]?[a-zA-Z]+|\\.|.)")
"""Brackets of a given size, which MathML chooses by itself."""

_DIGITS = re.compile(r"(\\[dt]?frac|\\sqrt)\s*(\d)(?:\s*(\d))?")
r"""Fractions such as ``\tfrac43``: docutils takes 43 for a number, TeX takes 4 over 3."""

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_APPLY = "\u2061"
_ACCENTS = {"˙", "¨", "ˆ", "¯", "ˉ", "˜", "→"}
_OPENING, _CLOSING, _BARS = {"(", "[", "{", "⟨"}, {")", "]", "}", "⟩"}, {"|", "‖"}
_SIGNS = {"−", "-", "+", "±"}
_SCRIPTS = {"msub", "msup", "msubsup", "munder", "mover", "munderover"}
_THIN = "0.167em"

_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer, which ``html_math_renderer`` chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(latex: str, as_block: bool = False) -> str:
    """A formula as MathML.

    Raises:
        Exception: docutils cannot convert it; the kind is MathError, SyntaxError or what Python raises in its parser.
    """
    plain = _DIGITS.sub(lambda m: m[1] + "".join(f"{{{digit}}}" for digit in m.groups()[1:] if digit), latex)
    text = tex2mathml(_SIZES.sub(_fitting, plain), as_block=as_block).replace("&ApplyFunction;", _APPLY)
    ET.register_namespace("", _NAMESPACE)
    root = ET.fromstring(text)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
        element.text, element.tail = (element.text or "").strip() or None, None
    typeset(root)
    root.set("xmlns", _NAMESPACE)
    return ET.tostring(root, encoding="unicode")


def _fitting(bracket: re.Match) -> str:
    """A bracket of a given size as one that fits to its content; a bar may be either side and stays as it is."""
    if bracket[1] == "|":
        return "|"
    opens = bracket[1] in _OPENING or bracket[1].startswith(("\\l", "\\{"))
    return f"\\{'left' if opens else 'right'}{bracket[1]}"


def typeset(element: ET.Element) -> None:
    """Correct accents, primes, brackets, signs and the space around functions in an element and all below it."""
    for child in element:
        typeset(child)
    if element.tag == "munderover" and element[2].text in _ACCENTS:
        # docutils sets the index of `\dot q_1` below the letter
        base, index, accent = element
        marked = ET.Element("mover", accent="true")
        marked.extend([base, accent])
        _become(element, "msub", marked, index)
    elif element.tag == "mover" and element[1].text == "_":
        _become(element, "mrow", element[0])  # \overline: the style sheet draws the line
        element.set("class", "overline")
    elif element.tag == "mtable":
        element.set("displaystyle", "true")
    elif element.tag not in _SCRIPTS | {"mfrac", "mroot"}:
        _primes(element)
        _brackets(element)
        _functions(element)
        _signs(element)


def _become(element: ET.Element, tag: str, *children: ET.Element) -> None:
    """Change the tag and the children of an element in place."""
    element[:] = children
    element.tag = tag
    element.attrib.clear()


def _primes(row: ET.Element) -> None:
    """A prime is a superscript of the letter before it."""
    for mark in [child for child in row if child.tag == "mo" and child.text == "'"]:
        before = row[list(row).index(mark) - 1]
        row.remove(mark)
        mark.text = "′"
        lowered = ET.Element("mpadded", voffset="-0.35em", height="-0.35em")  # the glyph is high already
        lowered.append(mark)
        letter = ET.Element(before.tag, before.attrib)
        letter.text, letter[:] = before.text, list(before)
        before.text = None
        if before.tag == "msub":
            _become(before, "msubsup", *letter, lowered)
        else:
            _become(before, "msup", letter, lowered)


def _brackets(row: ET.Element) -> None:
    r"""Bars open and close in turn. Brackets outside of a row of their own, which ``\left`` makes, keep their size."""
    own = (
        row.tag == "mrow"
        and len(row) > 1
        and all(e.tag == "mo" and "stretchy" not in e.attrib for e in (row[0], row[-1]))
    )
    open_bars: dict[str, bool] = {}
    for child in row:
        mark = child[0] if child.tag in _SCRIPTS else child
        if mark.tag != "mo" or mark.text not in _OPENING | _CLOSING | _BARS:
            continue
        opens = mark.text in _OPENING
        if mark.text in _BARS:
            opens = open_bars[mark.text] = not open_bars.get(mark.text, False)
        mark.set("form", "prefix" if opens else "postfix")
        if not own or child not in (row[0], row[-1]):
            mark.set("stretchy", "false")


def _functions(row: ET.Element) -> None:
    """A function such as ``ln`` has a thin space before it, and one behind it where no bracket follows."""
    i = 0
    while i < len(row):
        if not _is_function(row[i]):
            i += 1
            continue
        if i and not _is_operator(row[i - 1]):
            row.insert(i, ET.Element("mspace", width=_THIN))
            i += 1
        if i + 1 < len(row) and row[i + 1].text == _APPLY:
            row.remove(row[i + 1])
        following = row[i + 1] if i + 1 < len(row) else None
        if following is not None and (following.tag != "mo" or _is_function(following)):
            row.insert(i + 1, ET.Element("mspace", width=_THIN))
        i += 1


def _signs(row: ET.Element) -> None:
    """A minus or plus behind another operator is a sign."""
    for before, mark in itertools.pairwise(row):
        if mark.tag == "mo" and mark.text in _SIGNS and before.tag == "mo" and before.get("form") != "postfix":
            mark.set("form", "prefix")


def _is_function(element: ET.Element) -> bool:
    """Whether it is a name of several upright letters, perhaps with an index or an exponent."""
    name = element[0] if element.tag in _SCRIPTS and len(element) else element
    named = name.tag in ("mi", "mo") and len(name.text or "") > 1 and (name.text or "").isalpha()
    if named and name.tag == "mo":  # such as max, which would have the space of a relation
        name.attrib.update(lspace="0", rspace="0")
    return named


def _is_operator(element: ET.Element) -> bool:
    """Whether it brings its own space: an operator that is no closing bracket, or a space."""
    mark = element[0] if element.tag in _SCRIPTS and len(element) else element
    closes = mark.get("form") == "postfix"
    return mark.tag in ("mspace", "mstyle") or (mark.tag == "mo" and not closes)


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
        return mathml(latex, as_block)
    except Exception as fault:
        _LOG.warning("formula %r cannot be shown as MathML: %s", latex, fault, location=node)
        return f"<code>{html.escape(latex)}</code>"
