"""How the worlds of a batch are shared by the threads of a CPU."""

import numpy as np
from canvas import Drawing

WORLDS, THREADS = 8, 2


def draw() -> Drawing:
    """Shares of consecutive worlds, and time along each thread."""
    shares = np.array_split(np.arange(WORLDS), THREADS)
    d = Drawing(
        "Worlds and threads",
        f"A simulation of {WORLDS} worlds, which differ in parameters, initial states or controls. Each of {THREADS} "
        "threads takes consecutive worlds and simulates them at the same time as the others; the results are the same "
        "to the last bit for any number of threads.",
        312,
    )
    d.text((20, 36), "eight worlds of one simulation", anchor="start", bold=True)
    d.text((400, 36), "two threads", anchor="start", bold=True)
    for row, (share, colour, fill) in enumerate(zip(shares, ("blue", "orange"), ("sky", "sand"), strict=True)):
        y = 60 + 106 * row
        for column, k in enumerate(share):
            x, angle = 20 + 78 * column, 0.2 + 0.1 * k  # a world has an initial angle of its own
            bob = np.array([x + 34, y + 12]) + 32 * np.array([np.sin(angle), np.cos(angle)])
            d.box((x, y), (68, 84), fill, colour)
            d.line([(x + 34, y + 12), bob], colour, 3).circle(bob, 6, colour)
            d.note((x + 14, y + 76), str(k), colour)
        d.arrow((334, y + 42), (388, y + 42), colour, 3)
        for k in range(7):
            d.box((400 + 40 * k, y + 20), (34, 44), fill, colour, radius=4)
    d.arrow((400, 274), (640, 274), "ink", 2)
    d.note((652, 280), "time", "ink", "start")
    d.note((176, 292), "they never interact").note((500, 300), "control intervals")
    return d
