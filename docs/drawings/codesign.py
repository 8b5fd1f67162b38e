"""Co-design: body and control go through one simulation, and one gradient comes back to both."""

from canvas import Drawing


def draw() -> Drawing:
    """Two kinds of unknowns, a simulation and a loss."""
    d = Drawing(
        "Co-design of a body and its control",
        "Free numbers become the stiffness of a body that obeys its constraint; a table becomes the control. "
        "Both go into one simulation, whose result is judged by a loss. The gradient of the loss goes back to both.",
        300,
    )
    d.labelled((20, 40), (180, 84), "body", "sky", "blue", below="stiffness *e*(*z*)")
    d.labelled((20, 176), (180, 84), "control", "mint", "green", below="signal *u*(*t*)")
    d.labelled((310, 108), (150, 84), "simulation", below="all steps")
    d.labelled((550, 108), (130, 84), "loss", "sand", "orange", below="*J*(*z*, *u*)")
    for y, end, colour in ((70, 126, "blue"), (230, 174, "green")):
        d.arrow((206, y), (304, end), colour, 3)
    d.arrow((466, 140), (544, 140), "ink", 3)
    d.arrow((544, 166), (466, 166), "purple", 2.5)
    d.arrow((304, 142), (206, 98), "purple", 2.5)
    d.arrow((304, 158), (206, 202), "purple", 2.5)
    d.text((420, 236), "one gradient, back to both", "purple")
    return d
