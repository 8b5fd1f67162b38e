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
    d.box((20, 79), (140, 96), "wash", "grey")
    d.text((90, 119), "one lab", bold=True)
    d.text((90, 149), "Python file", size=19)
    for k, (name, text) in enumerate(ROWS):
        y = 43 + 56 * k
        d.line([(160, 127), (204, 127), (204, y), (214, y)], "faint", 2)
        d.box((216, y - 21), (130, 42), "sky", "blue")
        d.text((281, y + 7), name, "blue", bold=True)
        d.text((362, y + 7), text, size=19, anchor="start")
    d.text((90, 204), "lab make", "grey", size=19)
    d.box((20, 292), (170, 70), "sand", "orange")
    d.text((105, 334), "handed in", "orange", bold=True)
    d.arrow((196, 327), (318, 327), "grey", 2.5)
    d.text((257, 316), "lab grade", "grey", size=19)
    d.box((324, 292), (150, 70), "mint", "green")
    d.text((399, 324), "points", "green", bold=True)
    d.text((399, 349), "as a table", size=19)
    d.box((500, 292), (180, 70), "mint", "green")
    d.text((590, 324), "feedback", "green", bold=True)
    d.text((590, 349), "per student", size=19)
    return d
