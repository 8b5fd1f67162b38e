"""Scenes that are quick, and a viewer that is no browser."""

import dataclasses

import warpbots as wb
from warpbots.scene import Box, Joint, RigidBody, Sphere


def soft_cube(gravity=(0.0, 0.0, -9.81), **more):
    """A cube of 100 g on elements, above no floor."""
    cube = wb.SoftBody("cube", Box((-0.05, -0.05, -0.05), (0.05, 0.05, 0.05)), wb.Material(1e5, 0.3, density=100.0))
    scene = wb.Scene([cube], gravity=gravity, **more)
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=0.01)


def soft_floor():
    """The cube on a floor."""
    scene = dataclasses.replace(soft_cube().scene, obstacles=[wb.floor(-0.06)])
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=0.01)


def flat_bar(**more):
    """A bar in 2D on particles, with two muscles above a floor."""
    halves = {"left": Box((0.1, 0.1), (0.2, 0.15)), "right": Box((0.2, 0.1), (0.3, 0.15))}
    bar = wb.SoftBody("bar", Box((0.1, 0.1), (0.3, 0.15)), wb.Material(2e4, 0.3, density=1e3), regions=halves)
    muscles = [wb.actuators.Pressure(name, name, 1e3) for name in halves]
    scene = wb.Scene([bar], actuators=muscles, obstacles=[wb.floor(0.05, dim=2)], gravity=(0.0, -9.81))
    return wb.Simulation(scene, wb.MPM(dx=1 / 40), dt=5e-3, **more)


def rod():
    """A free rod of 1 kg that lies along the x axis."""
    body = RigidBody("rod", Box((-0.2, -0.02, -0.02), (0.2, 0.02, 0.02)), density=1.0 / (0.4 * 0.04 * 0.04))
    scene = wb.Scene([body], joints=[Joint("free", "free", None, "rod")])
    return wb.Simulation(scene, wb.Articulated(), dt=0.005)


def ball_beside_cube():
    """A rigid ball that is seen in front of a soft cube, from the side of negative y."""
    cube = wb.SoftBody("cube", Box((-0.1, 0.0, -0.1), (0.1, 0.2, 0.1)), wb.Material(1e5, 0.3, density=100.0))
    ball = RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.03), density=1e3, position=(0.05, -0.2, 0.0))
    scene = wb.Scene([cube, ball], joints=[Joint("free", "free", None, "ball", position=(0.05, -0.2, 0.0))])
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.1), dt=0.01)


class Viewer:
    """Keeps what a browser would get."""

    def __init__(self):
        self.scene, self.frames = None, []

    def __call__(self, message, buffers):
        if message["type"] == "scene":
            self.scene = message, buffers
        else:
            self.frames.append((message, buffers))


def press(*drives):
    """A plate that drives move, over a soft cube in weightlessness."""
    plate = wb.Obstacle(Box((-0.06, -0.06, 0.1), (0.06, 0.06, 0.12)), name="plate")
    scene = dataclasses.replace(soft_cube(gravity=(0.0, 0.0, 0.0)).scene, obstacles=[plate], actuators=drives)
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=0.01)
