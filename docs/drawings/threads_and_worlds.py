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
        330,
    )
    d.text((20, 34), "one simulation, eight worlds", anchor="start", bold=True)
    colours = (("blue", "sky"), ("orange", "sand"))
    place = 22 + 84 * np.arange(WORLDS)
    for share, (colour, fill) in zip(shares, colours):
        for k in share:
            x = place[k]
            d.box((x, 52), (70, 76), fill, colour)
            heading = 0.25 + 0.11 * k  # a world has its own initial angle
            d.line([(x + 35, 66), (x + 35 + 38 * np.sin(heading), 66 + 38 * np.cos(heading))], colour, 3)
            d.circle((x + 35 + 38 * np.sin(heading), 66 + 38 * np.cos(heading)), 6, colour)
            d.note((x + 14, 120), str(k), colour)
    for row, (share, (colour, fill)) in enumerate(zip(shares, colours)):
        y = 186 + 62 * row
        d.arrow((place[share].mean() + 35, 132), (place[share].mean() + 35, y - 4 if row == 0 else y - 4), colour, 2.5)
        d.text((20, y + 27), f"thread {row + 1}", colour, anchor="start")
        for k in range(8):
            d.box((124 + 65 * k, y), (59, 40), fill, colour, radius=4)
    d.arrow((124, 306), (640, 306), "ink", 2)
    d.note((652, 312), "time", "ink", "start")
    d.note((382, 296), "control intervals")
    return d
