"""What the command line makes of a file."""

from canvas import Drawing

ROWS = (
    ("info", "bodies, parameters, time step"),
    ("view · bench", "a page in the browser"),
    ("render", "film or film strip"),
    ("simulate", "motion as USD and GIF"),
    ("train · sweep", "a controller that was trained"),
    ("convert", "USD, MJCF or URDF"),
)


def draw() -> Drawing:
    """A file, the commands, their results."""
    d = Drawing(
        "A file, the commands and their results",
        "A scene in USD, or a robot in MJCF or URDF, goes into the commands of warpbots: "
        + "; ".join(f"{name.replace(' · ', ' and ')}: {result}" for name, result in ROWS)
        + ".",
        30 + 56 * len(ROWS),
    )
    middle = 15 + 28 * len(ROWS)
    d.box((20, middle - 64), (130, 128), "wash", "grey")
    for k, words in enumerate(("USD", "MJCF", "URDF")):
        d.text((85, middle - 26 + 34 * k), words, bold=True)
    for k, (name, result) in enumerate(ROWS):
        y = 43 + 56 * k
        d.line([(154, middle), (194, middle), (194, y), (206, y)], "faint", 2)
        d.box((208, y - 21), (156, 42), "sky", "blue")
        d.text((286, y + 7), name, "blue", bold=True)
        d.arrow((370, y), (408, y), "grey", 2.5)
        d.text((418, y + 7), result, size=19, anchor="start")
    return d
