"""The loop of a controller: state, observer, observation, controller, control, and the next interval."""

import numpy as np
from canvas import Drawing


def draw() -> Drawing:
    """Three boxes in a circle, and the control signal as it is held over an interval."""
    d = Drawing(
        "The loop of an observer and a controller",
        "The simulation hands its state to an observer, which computes an observation; a controller turns it into "
        "control signals between minus one and one, one for each channel, which are held for an interval while the "
        "solver takes its substeps. A gradient passes through the whole loop.",
        386,
    )
    d.labelled((20, 40), (186, 82), "Simulation", "sky", "blue", "a control interval")
    d.labelled((494, 40), (186, 82), "Observer", "mint", "green", "sensors")
    d.labelled((257, 176), (186, 82), "Controller", "sand", "orange", "table, MLP, yours")
    d.arrow((210, 80), (490, 80), "ink", 3)
    d.text((350, 66), "state")
    d.arrow((587, 126), (447, 217), "ink", 3, bend=0.16)
    d.text((560, 196), "observation", anchor="start")
    d.arrow((253, 217), (113, 126), "ink", 3, bend=0.16)
    d.text((140, 196), "control *u*", anchor="end")
    left, width, top, height = 92, 560, 284, 64
    t = np.linspace(0, 1, 8)
    u = np.sin(2 * np.pi * t[:-1] + 0.3)
    steps = np.stack([np.repeat(t, 2)[1:-1], np.repeat(u, 2)], -1)
    at = np.array([left, top + height / 2]) + steps * (width, -height / 2)
    d.line([(left, top + height / 2), (left + width + 16, top + height / 2)], "grey", 1.5)
    for x in left + width * t:
        d.line([(x, top), (x, top + height)], "faint", 1.5)
    fine = left + width * np.linspace(0, 1, 7 * 5 + 1)
    d.segments([[(x, top + height / 2 - 4), (x, top + height / 2 + 4)] for x in fine], "grey", 1.5)
    d.line(at, "orange", 3.5)
    d.note((left - 12, top + 14), "1", anchor="end").note((left - 12, top + height), "−1", anchor="end")
    d.note((left + width / 2, top + height + 26), "held for each interval *dt*, of several solver steps")
    return d
