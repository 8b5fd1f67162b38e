"""An environment between a learner and a simulation: action, observation, reward, reset, gradient."""

from canvas import Drawing


def draw() -> Drawing:
    """A learner and an environment of several worlds."""
    d = Drawing(
        "A learner and an environment of several worlds",
        "The learner sends an action for each world. The environment simulates a control interval of all worlds and "
        "returns observations, rewards, and which episodes have ended; an ended world starts anew with a random state "
        "and random parameters. The gradient of the rewards with respect to the actions goes back the same way.",
        370,
    )
    d.box((20, 120), (170, 190), "sky", "blue")
    d.text((105, 178), "learner", "blue", bold=True)
    d.text((105, 210), "PPO, SAC,", size=19)
    d.text((105, 236), "SHAC", size=19)
    d.box((420, 40), (260, 310), "wash", "grey")
    d.text((550, 76), "environment", bold=True)
    for k in range(3):
        y = 98 + 64 * k
        d.labelled((446, y), (208, 48), f"world {k}", "mint", "green")
    d.text((550, 324), "reset where ended", "orange", size=19)
    d.arrow((196, 150), (412, 150), "ink", 3)
    d.text((304, 138), "actions")
    d.arrow((412, 200), (196, 200), "ink", 3)
    d.text((304, 226), "observations,", size=19)
    d.text((304, 250), "rewards, ends", size=19)
    d.arrow((412, 290), (196, 290), "purple", 2.5)
    d.text((304, 316), "gradient, if wanted", "purple", size=19)
    return d
