"""Gradients through the exchange of impulses between matter and rigid bodies, against differences."""

import numpy as np
import pytest
import torch
from flat_scenes import flat_anvil, flat_flail, flat_hammer
from hybrid_scenes import MATTER, anvil, ball_and_jelly, flail, hammer, splash

import warpbots as wb

pytestmark = [pytest.mark.verification, pytest.mark.filterwarnings("ignore:rigid bodies that rest on masses")]


SOFT = {
    "mpm": wb.MPM(0.0125), "euler": wb.MassSpring(0.0125, damping=1e-3),
    "verlet": wb.MassSpring(0.0125, integrator="verlet", drag=1.0, collision=1.0, contact_stiffness=1e6),
}  # fmt: skip
"""Solvers of matter."""
CASES = [(hammer, matter, integrator) for matter in SOFT for integrator in ("sdirk2", "bdf1")]
HELD = [(anvil, "mpm", "sdirk2"), (anvil, "mpm", "bdf1"), (anvil, "euler", "bdf1")]
BOUND = [(flail, matter, integrator) for matter in ("euler", "verlet") for integrator in ("sdirk2", "bdf1")]
FLAT = [
    (flat_hammer, "mpm", "sdirk2"), (flat_hammer, "mpm", "bdf1"), (flat_hammer, "verlet", "bdf1"),
    (flat_anvil, "mpm", "sdirk2"), (flat_anvil, "euler", "bdf1"), (flat_flail, "euler", "sdirk2"),
    (flat_flail, "verlet", "bdf1"),
]  # fmt: skip


def case(scene, matter: str, integrator: str):
    """A loss of four steps, its leaves by name (state, controls and every parameter), their directions and gradients."""
    solver = wb.Coupled(SOFT[matter], wb.Articulated(integrator, tolerance=1e-13))
    sim = wb.Simulation(scene(), solver, 1e-3, 1)
    rng, start = np.random.default_rng(1), sim.state()
    weights = {n: torch.tensor(rng.normal(size=tuple(t.shape))) for n, t in vars(start).items() if t.numel()}
    moving = {n: t.clone() for n, t in vars(start).items() if n in weights and n != "lost"}
    if matter != "mpm":  # masses that rest exactly on the floor are at a kink
        moving["position"][..., -1] -= 1e-4
        moving["velocity"] += 0.01 * torch.tensor(rng.normal(size=tuple(start.velocity.shape)))
    else:
        weights["velocity_gradient"] *= 1e-3
        moving["velocity_gradient"] += 0.1 * torch.tensor(rng.normal(size=tuple(start.velocity_gradient.shape)))
    values = {n: sim.parameter(n) for n in sim.parameters()}
    for name, rest in {
        "load": 1e-5,
        "drag": 1e-3,
        "joint_stiffness": 0.1,
        "joint_damping": 0.01,
        "armature": 1e-4,
    }.items():
        values |= {name: values[name] + rest} if name in values else {}
    control = torch.full((1, sim.channels), 0.3, dtype=torch.float64)
    leaves = {"control": control, **moving, **values}

    def loss(control, **given):
        state = sim.state(**{n: given.pop(n) for n in moving})
        for _ in range(4):
            state = sim.step(state, control, **given)
        return sum((w * getattr(state, n)).sum() for n, w in weights.items())

    for value in leaves.values():
        value.requires_grad_(True)
    gradients = torch.autograd.grad(loss(**leaves), list(leaves.values()), allow_unused=True)
    leaves = {n: value.detach() for n, value in leaves.items()}
    directions = {}
    for name, value in leaves.items():
        direction = torch.tensor(rng.normal(size=tuple(value.shape))) * value.abs().clamp(min=value.abs().max() * 1e-3)
        directions[name] = direction if direction.abs().max() > 0 else torch.ones_like(value)
    return loss, leaves, directions, dict(zip(leaves, gradients, strict=True))


@pytest.mark.parametrize(("scene", "matter", "integrator"), [*CASES, *HELD, *BOUND, (splash, "mpm", "sdirk2"), *FLAT])
def test_gradients_are_those_of_differences(scene, matter, integrator):
    """By the state, the controls and every parameter, of both sides and of the contact."""
    loss, leaves, directions, gradients = case(scene, matter, integrator)
    found = {}
    for name, value in leaves.items():
        e = 2e-7 if name == "position" else 1e-6  # masses touch or part at other positions
        with torch.no_grad():
            pair = [loss(**leaves | {name: value + s * e * directions[name]}) for s in (1.0, -1.0)]
        found[name] = (float((gradients[name] * directions[name]).sum()), float(pair[0] - pair[1]) / (2.0 * e))
    for name, (gradient, difference) in found.items():
        assert gradient == pytest.approx(difference, rel=1e-5, abs=5e-7), (name, found)


@pytest.mark.parametrize(("scene", "matter", "integrator"), BOUND)
def test_remainders_across_bound_masses_fall_with_the_square_of_the_step(scene, matter, integrator):
    """|L(x + e d) - L(x) - e L'(x) d|, for every quantity, falls by four where e is halved, or is zero to rounding."""
    loss, leaves, directions, gradients = case(scene, matter, integrator)
    with torch.no_grad():
        at = float(loss(**leaves))
        for name, value in leaves.items():
            slope, rest = float((gradients[name] * directions[name]).sum()), []
            size = 2e-7 if name == "position" else 1e-4
            for e in (size, size / 2.0):
                rest.append(abs(float(loss(**leaves | {name: value + e * directions[name]})) - at - e * slope))
            assert rest[0] < 1e-12 or 3.5 < rest[0] / rest[1] < 4.5, (name, rest, at)


@pytest.mark.parametrize("matter", MATTER)
def test_derivatives_that_are_zero_are_zero(matter):
    """The momentum of both after a collision does not depend on stiffness and friction, as the velocity of the ball does."""
    sim = wb.Simulation(
        ball_and_jelly(friction=0.1), wb.Coupled(MATTER[matter](0.025), wb.Articulated(tolerance=1e-13)), 5e-3
    )
    start, control = sim.state(), torch.zeros(1, 0)
    qd = start.qd.clone()
    qd[0, :3] = torch.tensor([0.3, 0.1, -0.3])
    leaves = {n: sim.parameter(n).requires_grad_(True) for n in ("youngs_modulus", "body_friction")}
    state = sim.state(**{**vars(start), "qd": qd})
    for _ in range(8):
        state = sim.step(state, control, **leaves)
    momentum = sim.sense(state, control, **leaves).momentum
    own = torch.autograd.grad(state.qd.sum(), list(leaves.values()), retain_graph=True)
    whole = torch.autograd.grad(momentum.sum(), list(leaves.values()))
    for part, total in zip(own, whole, strict=True):
        assert part.abs().max() > 0.0
        assert total.abs().max() < 1e-12 * part.abs().max()
