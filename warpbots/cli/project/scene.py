"""The robot and its surroundings."""

import warpbots as wb

Box = wb.shapes.Box

LEGS = {
    "left_back": Box((0.20, 0.0), (0.25, 0.1)),
    "left_front": Box((0.25, 0.0), (0.30, 0.1)),
    "right_back": Box((0.40, 0.0), (0.45, 0.1)),
    "right_front": Box((0.45, 0.0), (0.50, 0.1)),
}


def scene() -> wb.Scene:
    """A bar on two legs, with a muscle in each half of a leg. Lengths are in metres, y is up."""
    shape = wb.shapes.Union((*LEGS.values(), Box((0.2, 0.1), (0.5, 0.2))))
    silicone = wb.Material(youngs_modulus=2e4, poissons_ratio=0.3, density=1000.0)
    return wb.Scene(
        name="PROJECT",
        bodies=[wb.SoftBody("walker", shape, silicone, regions=LEGS)],
        actuators=[wb.actuators.Muscle(name, region=name, direction=(0.0, 1.0), max_stress=2e3) for name in LEGS],
        obstacles=[wb.floor(dim=2, friction=0.5)],
        domain=((-0.4, 0.0), (1.5, 0.4)),
        task=wb.Task(1 / 80, control_interval=5e-3, substeps=5, steps=300, direction=(1.0, 0.0), clock=0.4),
    )


def simulation() -> wb.Simulation:
    """A simulation of the robot by the material point method, with control intervals of 5 ms."""
    return wb.Simulation(scene(), wb.MPM(dx=1 / 80), dt=5e-3, substeps=5)


def controller(sim: wb.Simulation) -> wb.controllers.MLP:
    """A multilayer perceptron that observes seven clusters of the body and a clock."""
    return wb.controllers.MLP(sim, wb.observers.Clusters(7), clock=0.4, seed=3)


if __name__ == "__main__":
    wb.usd.write("robot.usda", scene())
