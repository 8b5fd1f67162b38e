"""An episode of an optimisation: scene, model, rollout, loss, gradient, and the next parameters."""

import numpy as np
from canvas import Drawing, View

GRAVITY, TARGET = 9.81, np.array([1.9, 0.75])


def thrown(velocity: np.ndarray, duration: float = 0.62, steps: int = 9) -> np.ndarray:
    """Positions of a ball that is thrown from the origin, by the steps of symplectic Euler."""
    x, v, h, states = np.zeros(2), velocity.copy(), duration / steps, [np.zeros(2)]
    for _ in range(steps):
        v = v + h * np.array([0.0, -GRAVITY])
        x = x + h * v
        states.append(x)
    return np.array(states)


def draw() -> Drawing:
    """The circle of an episode."""
    d = Drawing(
        "An episode of an optimisation",
        "A scene is built into a model; a rollout makes a trajectory of states; a loss compares it with the target; "
        "the gradient goes back through all steps and changes parameters, controls or the initial state, and the next "
        "episode begins. The example is a ball that is thrown at a target, before and after one step of Newton's "
        "method.",
        430,
    )
    d.labelled((16, 20), (132, 74), "Scene", below="in SI units")
    d.labelled((216, 20), (132, 74), "Model", below="arrays")
    d.text((182, 44), "build", size=19)
    d.arrow((152, 60), (212, 60), "ink", 3)
    d.box((16, 136), (668, 194), "paper", "faint")
    d.text((34, 166), "Trajectory", anchor="start", bold=True)
    d.arrow((282, 98), (282, 132), "ink", 3)
    d.note((296, 122), "step, step, …", anchor="start")
    first = np.array([2.35, 4.0])
    states = thrown(first)
    duration = 0.62
    # The end is linear in the velocity, so that Newton's step for the squared distance hits.
    better = thrown(first + (TARGET - states[-1]) / duration)
    view = View((150, 306), 128)
    d.line(view([(-0.5, -0.03), (4.0, -0.03)]), "grey", 2)
    for path, colour, fill in ((better, "green", "mint"), (states, "blue", "sky")):
        d.line(view(path), colour, 1.5, dash="3 5")
        for p in path:
            d.circle(view(p), 8, fill, colour)
    aim = view(TARGET)
    d.circle(aim, 15, "", "orange", 3).circle(aim, 4, "orange")
    d.text(aim + (24, 6), "target", "orange", anchor="start")
    d.line([view(states[-1]), aim], "orange", 2.5)
    d.text((560, 190), "loss = distance²", "orange", anchor="middle")
    d.note((560, 232), "first episode", "blue").note((560, 260), "next episode", "green")
    d.arrow((640, 334), (640, 380), "orange", 3)
    d.text((420, 400), "gradient, back through all steps", "orange")
    d.arrow((640, 412), (60, 412), "orange", 3)
    d.arrow((60, 408), (60, 336), "orange", 3)
    d.note((78, 364), "changes parameters, controls, initial state", anchor="start")
    return d
