"""Small environments for tests: they take milliseconds."""

import torch

import warpbots as wb


def strip(softer: float = 1.0) -> wb.Scene:
    """A soft strip with two muscles on a floor, in the plane."""
    Box = wb.shapes.Box
    halves = {"left": Box((0.0, 0.0), (0.1, 0.05)), "right": Box((0.1, 0.0), (0.2, 0.05))}
    body = wb.SoftBody("strip", Box((0.0, 0.0), (0.2, 0.05)), wb.Material(5e4 / softer, damping=1e-3), halves)
    muscles = [wb.actuators.Muscle(name, name, (1.0, 0.0), 5e3) for name in halves]
    return wb.Scene([body], muscles, [wb.floor(dim=2, friction=0.5)], domain=((-0.3, 0.0), (0.5, 0.3)), name="strip")


def pendulum() -> wb.Scene:
    """A bar on a hinge with a motor."""
    bar = wb.RigidBody("bar", wb.shapes.Box((0.0, -0.01, -0.01), (0.2, 0.01, 0.01)), 1000.0)
    hinge = wb.Joint("hinge", "revolute", None, "bar", axis=(0.0, 1.0, 0.0), damping=1e-3)
    return wb.Scene([bar], [wb.actuators.Torque("motor", "hinge", 0.3)], joints=[hinge], name="pendulum")


def springs(worlds: int = 3) -> wb.Simulation:
    """The strip as masses and springs."""
    return wb.Simulation(strip(), wb.MassSpring(0.025), 0.01, 10, worlds=worlds)


def speed(transition: wb.envs.Transition) -> dict[str, torch.Tensor]:
    """Speed along the first axis, and a cost of effort."""
    before, after = map(transition.simulation.center_of_mass, (transition.before, transition.after))
    velocity = (after - before)[:, 0] / transition.simulation.dt
    return {"speed": velocity, "effort": -0.01 * transition.control.square().sum(dim=1)}


def episode(**options) -> wb.envs.Episode:
    """Six intervals of the strip, which starts with a random push."""
    given = {"observer": wb.observers.Centroid(), "reward": speed, "steps": 6,
             "start": {"velocity": wb.envs.Shifted((-0.1, 0.0), (0.1, 0.0))}} | options  # fmt: skip
    return wb.envs.Episode(**given)


def environment(worlds=3, sim=None, *, of=None, **options) -> "wb.envs.SimulationVectorEnv":
    """A batch of the strip, or of another simulation."""
    return wb.envs.SimulationVectorEnv(sim or springs(worlds), of or episode(), **options)


def actions(env, seed: int = 0, steps: int = 6) -> torch.Tensor:
    """Random actions, shape (steps, worlds, channels)."""
    generator = torch.Generator().manual_seed(seed)
    return 2.0 * torch.rand(steps, env.num_envs, env.simulation.channels, generator=generator) - 1.0
