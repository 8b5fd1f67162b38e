"""Gradients to everything against central differences in double precision: in the air, on a floor and on a ball."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from soft_bodies import (
    beam,
    beating,
    breathing,
    cloth,
    contact_forces,
    damped,
    driven,
    guided,
    machine,
    mixed,
    rolled,
    simulation,
    sliding,
    stirred,
    strung,
    swimming,
    truss,
)

from warpbots.gradients import Checkpoints
from warpbots.scene import Box, Constraint, HalfSpace, Obstacle, Posed, Sphere, floor

pytestmark = pytest.mark.verification

BALL = Obstacle(Sphere((0.04, 0.04, -0.3), 0.3), friction=0.3)
UP = Rotation.from_euler("yz", [45, 20], degrees=True).as_matrix()
BAR = Posed(Box((-0.1, -0.2, -0.1), (0.1, 0.2, 0.1)), (0.05, 0.04, -0.001 - 0.1 * 2**0.5), UP)
RIDGE = Obstacle(BAR, friction=0.3)
"""A bar with an edge up, between the nodes of a cube."""


def slotted(*obstacles):
    """The cube of `sliding` whose upper half stays in a plane that is not quite upright, on a floor."""
    scene = sliding("corotated", obstacles)
    return dataclasses.replace(scene, constraints=(Constraint("top", "plane", (0.0, 1.0, 0.1)),))


def slanted(scene):
    """The scene with the end of its finger in an oblique plane."""
    end = {"end": HalfSpace((0.119, 0, 0), (-1, 0, 0))}
    body = dataclasses.replace(scene.bodies[0], regions=scene.bodies[0].regions | end)
    plane = Constraint("end", "plane", (1.0, 0.3, 0.2), "plane")
    return dataclasses.replace(scene, bodies=(body,), constraints=(*scene.constraints, plane))


CASES = {
    "air-corotated": (lambda: beam("corotated"), 3, 1e-6),
    "air-neo-hookean": (lambda: beam("neo_hookean", nu=0.45), 3, 1e-6),
    "air-cloth": (cloth, 3, 1e-6),
    "air-truss": (truss, 3, 1e-6),
    "air-mixed": (mixed, 3, 1e-6),
    "air-driven": (driven, 3, 1e-6),
    "air-strung": (strung, 3, 1e-6),
    "air-breathing": (breathing, 3, 1e-6),
    "air-breathing-swimming": (lambda: swimming(breathing()), 3, 1e-6),
    "air-swimming": (lambda: swimming(driven("neo_hookean")), 3, 1e-6),
    "air-swimming-cloth": (lambda: swimming(cloth()), 3, 1e-6),
    "air-damped": (lambda: damped(beam("neo_hookean", nu=0.45)), 3, 1e-6),
    "air-damped-linear": (lambda: damped(beam("linear")), 3, 1e-6),
    "air-damped-mixed": (lambda: damped(mixed()), 3, 1e-6),
    "air-beating": (lambda: damped(beating()), 3, 1e-6),
    "air-motor": (lambda: machine(youngs_modulus=1e5), 3, 1e-6),
    "air-guided": (lambda: guided(strung(), HalfSpace((0.159, 0, 0.04), (-1, 0, 1)), (0.2, 0.1, 1.0)), 3, 1e-6),
    "air-breathing-guided": (lambda: slanted(breathing()), 3, 1e-6),
    "air-mixed-direct": (mixed, 2, 1e-6),
    "air-motor-direct": (lambda: damped(machine(youngs_modulus=1e5)), 2, 1e-6),
    "air-breathing-guided-direct": (lambda: slanted(breathing()), 2, 1e-6),
    "cloth": (lambda: cloth((floor(-0.012, friction=0.3),), held=False), 6, 1e-4),
    "slides": (lambda: sliding("corotated", (floor(friction=0.3),)), 6, 1e-4),
    "slides-swimming": (lambda: swimming(sliding("corotated", (floor(friction=0.3),))), 6, 1e-4),
    "slides-damped": (lambda: damped(sliding("neo_hookean", (floor(friction=0.3),))), 6, 1e-4),
    "slides-guided": (lambda: slotted(floor(friction=0.3)), 6, 1e-4),
    "slides-adaptive": (lambda: sliding("corotated", (floor(friction=0.3),)), 3, 1e-4),
    "sticks": (lambda: sliding("neo_hookean", (floor(friction=0.9),), (0.2, 0.0, -0.1)), 6, 1e-4),
    "slides-breathing": (lambda: breathing((floor(friction=0.3),), held=False), 6, 1e-4),
    "ridge": (lambda: sliding("corotated", (RIDGE,), (0.3, 0.1, -0.3)), 6, 1e-4),
    "air-quadratic": (lambda: damped(beam("neo_hookean", nu=0.4)), 2, 1e-6),
    "air-driven-quadratic": (lambda: driven("neo_hookean"), 2, 1e-6),
    "air-driven-hexahedra": (driven, 2, 1e-6),
    "slides-hexahedra": (lambda: damped(sliding("neo_hookean", (floor(friction=0.3),))), 3, 1e-4),
    "ball": (lambda: sliding("corotated", (BALL,)), 8, 1e-4),
    "slippery": (lambda: sliding("corotated", (floor(condition="slip"),)), 6, 1e-4),
    "sticky": (lambda: sliding("corotated", (floor(condition="sticky"),)), 6, 1e-4),
}
ELEMENTS = {"quadratic": "quadratic_tetrahedra", "hexahedra": "hexahedra"}
"""Elements of solids by the end of the name of a case, linear tetrahedra in other cases."""
IDLE = {("air-truss", "poissons_ratio")}
"""What a case does not depend on."""

STEPS = (1e-2, 1e-3, 1e-4, 1e-5)
"""Of the scale of an input: kinks of friction are near for the large ones, rounding for the small ones."""


def elements_of(case: str) -> str:
    return ELEMENTS.get(case.rpartition("-")[2], "tetrahedra")


def weights(sim, rng):
    shape = sim.state().position.shape
    return torch.as_tensor(rng.normal(size=shape)), 0.01 * torch.as_tensor(rng.normal(size=shape))


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case, rng):
    """Relative 1e-6 without contact and 1e-4 with it, along a random direction of every input.

    Of the slope, or of a thousandth of the steepest one, where a direction happens to be across the gradient.
    """
    scene, intervals, tolerance = CASES[case]
    how = case.rpartition("-")[2]
    how = how if how in ("direct", "adaptive") else "iterative"
    sim = simulation(scene(), elements=elements_of(case), linear_solver=how)
    inputs = stirred(sim, rng, intervals)
    by_x, by_v = weights(sim, rng)

    def loss(values: dict) -> torch.Tensor:
        end = rolled(sim, values)
        return (by_x * end.position).sum() + (by_v * end.velocity).sum()

    with torch.no_grad():
        loss(inputs)
    assert (np.abs(contact_forces(sim)).sum() > 0.0) == (not case.startswith("air"))
    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    for name, value in inputs.items():
        if not value.numel():
            continue
        direction = torch.as_tensor(rng.normal(size=value.shape))
        scale = float(value.abs().mean()) or 1.0
        slopes = []
        for step in STEPS:
            with torch.no_grad():
                losses = [loss(inputs | {name: value + s * step * scale * direction}) for s in (1.0, -1.0, 2.0, -2.0)]
            there, back, far, far_back = losses  # differences of fourth order
            slopes.append(float(8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        steepest = float(leaves[name].grad.norm() * direction.norm())
        error = min(abs(slope - s) for s in slopes)
        assert (slope == 0.0) == ((case, name) in IDLE), name
        assert error <= tolerance * max(abs(slope), 1e-3 * steepest), (name, slope, slopes)


@pytest.mark.parametrize("case", ["air-neo-hookean", "air-driven-quadratic", "air-driven-hexahedra", "slides"])
def test_the_remainder_of_taylor_is_of_second_order(case, rng):
    """R(t) = |L(t) - L(0) - t L'(0)| along all inputs together falls as t^2 over two decades."""
    scene, intervals, _ = CASES[case]
    sim = simulation(scene(), elements=elements_of(case))
    inputs = stirred(sim, rng, intervals)
    by_x, by_v = weights(sim, rng)
    directions = {
        n: torch.as_tensor(rng.normal(size=v.shape)) * (float(v.abs().mean()) or 1.0) for n, v in inputs.items()
    }

    def loss(t: torch.Tensor) -> torch.Tensor:
        end = rolled(sim, {n: v + t * directions[n] for n, v in inputs.items()})
        return (by_x * end.position).sum() + (by_v * end.velocity).sum()

    t = torch.zeros((), requires_grad=True)
    start = loss(t)
    start.backward()
    steps = np.geomspace(4e-6, 4e-4, 5)
    with torch.no_grad():
        remainders = [abs(float(loss(torch.tensor(s)) - start) - s * float(t.grad)) for s in steps]
    order = np.polyfit(np.log(steps), np.log(remainders), 1)[0]
    assert 1.9 < order < 2.1, (order, remainders)


def test_the_gradient_does_not_depend_on_iterations_or_checkpoints(rng):
    """Solved to 1e-9 or to 1e-12, it is the same to 1e-6; every schedule gives the same bits."""
    found = []
    for tolerance, schedule in ((1e-12, Checkpoints.all()), (1e-12, Checkpoints.every(2)), (1e-9, Checkpoints.sqrt())):
        sim = simulation(sliding("corotated", (floor(friction=0.3),)), tolerance=tolerance)
        sim.checkpoints = schedule
        inputs = {n: v.requires_grad_() for n, v in stirred(sim, np.random.default_rng(0), 6).items()}
        end = rolled(sim, inputs)
        (end.position.square().sum() + end.velocity.square().sum()).backward()
        found.append({n: v.grad for n, v in inputs.items()})
    for name in found[0]:
        assert torch.equal(found[0][name], found[1][name]), name
        assert (found[2][name] - found[0][name]).norm() < 1e-6 * found[0][name].norm(), name
