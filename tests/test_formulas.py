"""Formulas of the site are set as TeX sets them."""

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site needs Sphinx")
EXTENSIONS = Path(__file__).resolve().parents[1] / "docs" / "_extension"
specification = importlib.util.spec_from_file_location("mathml", EXTENSIONS / "mathml.py")
mathml = importlib.util.module_from_spec(specification)
sys.modules["mathml"] = mathml
specification.loader.exec_module(mathml)


def tree(latex):
    """The formula as nested tuples of tags and texts."""

    def told(element):
        tag = element.tag.split("}")[1]
        return (tag, element.text) if not len(element) else (tag, *map(told, element))

    return [told(child) for child in ET.fromstring(mathml.mathml(latex))]


def marks(latex):
    """Operators of a formula, with their attributes."""
    found = ET.fromstring(mathml.mathml(latex)).iter("{http://www.w3.org/1998/Math/MathML}mo")
    return [(mark.text, mark.get("form"), mark.get("stretchy")) for mark in found]


def test_the_index_of_a_letter_with_a_dot_is_beside_both():
    dotted = ("mover", ("mi", "q"), ("mo", "˙"))
    assert tree(r"\dot q_{-1}") == [("msub", dotted, ("mrow", ("mo", "−"), ("mn", "1")))]
    assert tree(r"\hat x^2")[0][0] == "msup"


def test_a_prime_is_a_superscript_beside_an_index():
    prime = ("mpadded", ("mo", "′"))
    assert tree("C_p'") == [("msubsup", ("mi", "C"), ("mi", "p"), prime)]
    assert tree("x'") == [("msup", ("mi", "x"), prime)]


@pytest.mark.parametrize("latex", [r"\lVert y - s \rVert_M^2", r"\lvert x \rvert^2", "|x|^2"])
def test_both_bars_of_a_norm_have_the_size_of_their_line(latex):
    first, *_, last = [mark for mark in marks(latex) if mark[0] in "|‖"]
    assert first[1:] == ("prefix", "false") and last[1:] == ("postfix", "false")


def test_brackets_fit_where_that_is_asked_for():
    for latex in (r"\left(\frac{a}{b}\right)^2", r"\Bigl(\frac{a}{b}\Bigr)^2", r"\big(\frac{a}{b}\big)^2"):
        assert [mark[2] for mark in marks(latex)] == [None, None], latex
    assert [mark[2] for mark in marks("(a)")] == ["false", "false"]


def test_functions_have_a_space_where_no_bracket_is():
    space = ("mspace", None)
    assert tree(r"\mu\ln J") == [("mi", "μ"), space, ("mi", "ln"), space, ("mi", "J")]
    assert tree(r"\ln(J)")[:2] == [("mi", "ln"), ("mo", "(")]
    assert tree(r"\lambda\ln^2 J") == [("mi", "λ"), space, ("msup", ("mi", "ln"), ("mn", "2")), space, ("mi", "J")]


def test_a_minus_behind_an_operator_is_a_sign():
    assert ("−", "prefix", None) in marks(r"a \le -b")
    assert ("−", None, None) in marks("a - b")


def test_digits_of_a_fraction_need_no_braces():
    assert tree(r"\tfrac43") == [("mfrac", ("mn", "4"), ("mn", "3"))]
    assert tree(r"\sqrt2 x") == [("msqrt", ("mn", "2")), ("mi", "x")]


def test_what_cannot_be_converted_is_an_error():
    with pytest.raises(Exception, match="unknown"):
        mathml.mathml(r"\unknown")


def test_the_font_is_shipped_with_its_licence():
    fonts = EXTENSIONS.parent / "_static" / "fonts"
    assert (fonts / "formulas.woff2").read_bytes()[:4] == b"wOF2"
    assert "GUST Font License" in (fonts / "LICENCE.md").read_text()
    assert 'url("fonts/formulas.woff2")' in (EXTENSIONS.parent / "_static" / "layout.css").read_text()
