"""The notebooks that come from the source of a lab, and what becomes of them."""

from canvas import Drawing

ROWS = (
    ("student", "blanks, numbers of their own"),
    ("solution", "answers and hidden tests"),
    ("nbgrader", "for a course server"),
    ("otter", "for an archive that grades"),
)


def draw() -> Drawing:
    """A source, its forms, and the table of points."""
    d = Drawing(
        "From one file to the notebooks of a lab, and to the points",
        "The source of a lab is one Python file. The command lab make writes four notebooks: "
        + "; ".join(f"{name}: {text}" for name, text in ROWS)
        + ". Students hand in the first one; the command lab grade runs it with the hidden tests and writes a table.",
        382,
    )
    d.labelled((20, 79), (140, 96), "one lab", below="Python file")
    for k, (name, text) in enumerate(ROWS):
        y = 43 + 56 * k
        d.line([(160, 127), (204, 127), (204, y), (214, y)], "faint", 2)
        d.labelled((216, y - 21), (130, 42), name, "sky", "blue")
        d.text((362, y + 7), text, size=19, anchor="start")
    d.text((90, 204), "lab make", "grey", size=19)
    d.labelled((20, 292), (170, 70), "handed in", "sand", "orange")
    d.arrow((196, 327), (318, 327), "grey", 2.5)
    d.text((257, 316), "lab grade", "grey", size=19)
    d.labelled((324, 292), (150, 70), "points", "mint", "green", "as a table")
    d.labelled((500, 292), (180, 70), "feedback", "mint", "green", "per student")
    return d
