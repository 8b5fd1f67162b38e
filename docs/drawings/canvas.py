"""Strokes, arrows, labels and colours that all drawings share.

A drawing is an SVG of 700 units in width with a title, a description and colours of its own for a dark page. Its text
is 19 units high or more, which is 10 pixels on a page of 390. Coordinates are written to a tenth of a unit.
"""

import re
from collections.abc import Sequence
from typing import Self
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 700
SMALL, NORMAL, LARGE = 19, 21, 25
"""Sizes of text."""
COLOURS = {
    "paper": ("#ffffff", "#2f333a"),
    "ink": ("#1f2933", "#f0f2f5"),
    "grey": ("#6b7785", "#b3bdc8"),
    "faint": ("#cfd6de", "#5d6773"),
    "wash": ("#eef1f5", "#3e444d"),
    "blue": ("#1d5fd0", "#8db9ff"),
    "sky": ("#cfe0fb", "#2c4b7c"),
    "orange": ("#c2500c", "#ffa766"),
    "sand": ("#fbdcc0", "#6f4722"),
    "green": ("#157a3c", "#6fda98"),
    "mint": ("#cdeed8", "#255f3d"),
    "purple": ("#7a35b8", "#d0a9f7"),
}
"""Colours on a light and on a dark page. Each pale one belongs to the strong one before it.

The dark paper is lighter than a dark page, since the theme of the site darkens pictures: there both look the same.
"""
MARKUP = re.compile(r"(\*[^*]+\*|_\{[^}]+\}|\^\{[^}]+\})")
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


class Drawing:
    """An SVG under construction; all methods that draw return the drawing.

    Points are (x, y) in units from the upper left corner, y down. Colours are keys of `COLOURS`.
    """

    def __init__(self, title: str, description: str, height: float) -> None:
        self.size = (WIDTH, height)
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {WIDTH} {number(height)}",
                "width": str(WIDTH),
                "height": number(height),
                "role": "img",
                "aria-labelledby": "title description",
                "font-family": FONT,
                "stroke-linecap": "round",
                "stroke-linejoin": "round",
            },
        )
        ElementTree.SubElement(self.root, "title", {"id": "title"}).text = title
        ElementTree.SubElement(self.root, "desc", {"id": "description"}).text = description
        self.style = ElementTree.SubElement(self.root, "style")
        self._add("rect", {"width": str(WIDTH), "height": number(height)}, fill="paper")

    def line(
        self,
        points: ArrayLike,
        colour: str = "ink",
        width: float = 2.0,
        dash: str = "",
        fill: str = "",
        closed: bool = False,
    ) -> Self:
        """A polyline or a polygon through points of shape (points, 2)."""
        words = {"points": " ".join(f"{number(x)},{number(y)}" for x, y in np.asarray(points, float))}
        return self._stroked("polygon" if closed else "polyline", words, colour, width, dash, fill)

    def segments(self, pairs: ArrayLike, colour: str = "ink", width: float = 2.0) -> Self:
        """Many straight lines, of shape (lines, 2 ends, 2)."""
        path = "".join(f"M{place(start)}L{place(end)}" for start, end in np.asarray(pairs, float))
        return self._stroked("path", {"d": path}, colour, width, "", "")

    def arrow(
        self,
        start: ArrayLike,
        end: ArrayLike,
        colour: str = "ink",
        width: float = 3.0,
        bend: float = 0.0,
    ) -> Self:
        """An arrow; `bend` is the height of its arc to the left of its way, as a share of its length."""
        a, b = np.asarray(start, float), np.asarray(end, float)
        way = b - a
        middle = (a + b) / 2 + 2 * bend * np.array([way[1], -way[0]])
        tip = (b - middle) / np.linalg.norm(b - middle)
        side, head = np.array([-tip[1], tip[0]]), 4.5 + 2.5 * width
        foot = b - head * tip
        self._stroked("path", {"d": f"M{place(a)}Q{place(middle)} {place(foot)}"}, colour, width, "", "")
        corners = [b, foot + 0.42 * head * side, foot - 0.42 * head * side]
        return self.line(corners, colour, 1.0, fill=colour, closed=True)

    def circle(
        self, centre: ArrayLike, radius: float, fill: str = "", colour: str = "", width: float = 2.0, dash: str = ""
    ) -> Self:
        """A circle."""
        x, y = np.asarray(centre, float)
        words = {"cx": number(x), "cy": number(y), "r": number(radius)}
        return self._stroked("circle", words, colour, width, dash, fill)

    def box(
        self,
        corner: Sequence[float],
        size: Sequence[float],
        fill: str = "wash",
        colour: str = "grey",
        radius: float = 8.0,
        width: float = 2.0,
    ) -> Self:
        """A rectangle from its upper left corner."""
        names = ("x", "y", "width", "height", "rx")
        words = {name: number(value) for name, value in zip(names, (*corner, *size, radius), strict=True)}
        return self._stroked("rect", words, colour, width, "", fill)

    def text(
        self,
        at: ArrayLike,
        words: str,
        colour: str = "ink",
        size: float = NORMAL,
        anchor: str = "middle",
        bold: bool = False,
    ) -> Self:
        """A line of text with its baseline at a point; `*x*` is italic, `_{i}` a subscript, `^{2}` a superscript."""
        x, y = np.asarray(at, float)
        style = {"x": number(x), "y": number(y), "font-size": number(size), "text-anchor": anchor}
        element = self._add("text", style | ({"font-weight": "bold"} if bold else {}), fill=colour)
        shift = 0.0
        for part in filter(None, MARKUP.split(words)):
            level = {"_": 0.25, "^": -0.4}.get(part[0], 0.0) * size if MARKUP.fullmatch(part) else 0.0
            span = ElementTree.SubElement(element, "tspan")
            if level != shift:
                span.set("dy", number(level - shift))
            if part.startswith("*"):
                span.set("font-style", "italic")
            if level:
                span.set("font-size", number(0.72 * size))
            span.text = part.strip("*") if part.startswith("*") else part[2:-1] if level else part
            shift = level
        return self

    def note(self, at: ArrayLike, words: str, colour: str = "grey", anchor: str = "middle") -> Self:
        """Small text."""
        return self.text(at, words, colour, SMALL, anchor)

    def labelled(
        self, corner: Sequence[float], size: Sequence[float], words: str, fill: str = "wash", colour: str = "grey",
        below: str = "",
    ) -> Self:  # fmt: skip
        """A box with its name, and a small line below it inside the box."""
        (x, y), (w, h) = corner, size
        self.box(corner, size, fill, colour)
        self.text((x + w / 2, y + h / 2 + (-4 if below else 7)), words, bold=True)
        return self.note((x + w / 2, y + h / 2 + 22), below) if below else self

    def svg(self) -> str:
        """The file."""
        used = sorted({word for element in self.root.iter() for word in element.get("class", "").split()})

        def rules(page: int) -> str:
            return "".join(
                f".{word}{{{'fill' if word[0] == 'f' else 'stroke'}:{COLOURS[word[2:]][page]}}}" for word in used
            )

        self.style.text = f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}"
        ElementTree.indent(self.root, "")
        text = ElementTree.tostring(self.root, encoding="unicode")
        # A line break between two spans would be a space of the text.
        return re.sub(r"(<text[^>]*>|</tspan>)\n", r"\1", text) + "\n"

    def _stroked(self, tag: str, words: dict[str, str], colour: str, width: float, dash: str, fill: str) -> Self:
        dashes = {"stroke-dasharray": dash} if dash else {}
        stroke = {"stroke-width": number(width)} if colour else {}
        self._add(tag, words | stroke | dashes | ({} if fill else {"fill": "none"}), fill, colour)
        return self

    def _add(self, tag: str, words: dict[str, str], fill: str = "", stroke: str = "") -> ElementTree.Element:
        classes = [f"f-{fill}"] * bool(fill) + [f"s-{stroke}"] * bool(stroke)
        return ElementTree.SubElement(self.root, tag, {"class": " ".join(classes)} | words)


def number(value: float) -> str:
    """A coordinate, to a tenth of a unit.

    What is symmetric often lies on a tie between two tenths, whose rounding would depend on the machine.
    """
    return f"{round(float(value) + 1e-6, 1) + 0.0:g}"


def place(point: np.ndarray) -> str:
    """Both coordinates of a point in a path."""
    return f"{number(point[0])} {number(point[1])}"


class View:
    """From coordinates in a plane, y up, to those of a drawing."""

    def __init__(self, origin: Sequence[float], scale: float) -> None:
        self.origin, self.scale = np.asarray(origin, float), scale

    def __call__(self, points: ArrayLike) -> np.ndarray:
        """Points of shape (..., 2)."""
        return self.origin + self.scale * np.asarray(points, float) * (1.0, -1.0)


class Camera(View):
    """From coordinates in space, z up, to those of a drawing, without perspective.

    Args:
        azimuth: Direction from which the camera looks, about z from x [degrees].
        elevation: Angle of the camera above the horizon [degrees].
    """

    def __init__(self, origin: Sequence[float], scale: float, azimuth: float = -60.0, elevation: float = 22.0) -> None:
        super().__init__(origin, scale)
        a, e = np.radians((azimuth, elevation))
        self.toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        self.axes = np.stack([right, np.cross(self.toward, right)])

    def __call__(self, points: ArrayLike) -> np.ndarray:
        """Points of shape (..., 3)."""
        return super().__call__(np.asarray(points, float) @ self.axes.T)

    def depth(self, points: ArrayLike) -> np.ndarray:
        """Distance towards the camera, of shape (...)."""
        return np.asarray(points, float) @ self.toward
