"""Where training begins: a body at rest, controls of zero. No gradient there is zero because of the side of a kink."""

import numpy as np
import pytest
import torch
import warp as wp
from cases import ACTUATORS, DIMENSIONS, SOLVERS, SPACES, block, is_even, knows

from warpbots.actuation_laws import cable_kernels
from warpbots.numerics import ROUNDING, positive_part, precision, real, real_numpy, vector
from warpbots.optimize import fit
from warpbots.scene import (
    Box,
    Cable,
    Cloud,
    Contact,
    HalfSpace,
    Inertia,
    Joint,
    Load,
    Obstacle,
    RigidBody,
    Scene,
    Torque,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.cable_routes import cables_of

pytestmark = pytest.mark.verification(float32=True)

DRIVEN = [
    (s, dim, a) for s, dim in SPACES for a in ACTUATORS if knows(s, a) and (a == "cable" or dim == 2 or s != "mpm")
]
"""Solvers, dimensions and actuators; stresses of particles are the same in the plane and in space."""


def right_slope(f, h: float) -> float:
    """Derivative of f at 0 from values at 0, h/2 and h, of second order."""
    with torch.no_grad():
        return float(4.0 * f(h / 2.0) - 3.0 * f(0.0) - f(h)) / h


@pytest.mark.parametrize(("solver", "dim", "actuator"), DRIVEN)
def test_every_actuator_has_a_gradient_at_rest(solver, dim, actuator):
    """It is the derivative towards positive controls: that of a cable which pulls, though it is slack for negative ones."""
    scene = block(dim, actuators=(ACTUATORS[actuator](dim),), gravity=(0.0,) * dim)
    sim = Simulation(scene, SOLVERS[solver](1 / 8), 4e-3, None if solver != "own" else 20)
    weights = torch.linspace(-1.0, 2.0, sim.state().velocity.numel(), dtype=torch.float64)

    def moves(u):
        control = torch.as_tensor(u, dtype=sim.state().velocity.dtype) * torch.ones(2, 1)
        return (weights * sim.rollout(control, 2).final.velocity.double().flatten()).sum()

    u = torch.zeros((), dtype=sim.state().velocity.dtype, requires_grad=True)
    moves(u).backward()
    h, rounding = {"float64": (1e-4, 1e-6), "float32": (0.05, 0.02)}[precision]
    if is_even(ACTUATORS[actuator](dim), dim):
        assert float(u.grad) == 0.0
        assert abs(moves(1.0) - moves(0.0)) > 1e-4
        return
    assert abs(float(u.grad)) > 1e-4
    assert float(u.grad) == pytest.approx(right_slope(moves, h), rel=rounding)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_rounding_does_not_decide_whether_a_cable_is_taut(dim, rng):
    """Cables of the length of their routes at random places, up to 20 m from the origin, after a shake by 4 eps."""
    worlds, reach = 200, 0.3
    tension_of = []
    for _ in range(worlds):
        x = rng.uniform(0.0, reach, (4, dim)) + rng.choice([0.0, 1.0, 20.0]) * rng.uniform(-1.0, 1.0, dim)
        scene = block(dim, actuators=(ACTUATORS["cable"](dim),))
        scene = type(scene)(scene.bodies, [type(scene.actuators[0])("c", x, 200.0)])
        cables, count, waypoints = cables_of(scene, x, 1.0, wp.get_device("cpu"), "point", "dx")
        shaken = x * (1.0 + 4.0 * np.finfo(real_numpy).eps * rng.uniform(-1.0, 1.0, x.shape))
        tension_of.append(slope_of_tension(dim, cables, shaken))
        assert (count, waypoints) == (1, 4)
    assert (np.array(tension_of) > 0.0).all()


def slope_of_tension(dim: int, cables: object, x: np.ndarray) -> float:
    """dT/du of a cable [N] at u = 0."""
    length_kernel, tension_kernel, _ = cable_kernels(dim)
    x = wp.array(x[None].astype(real_numpy), dtype=vector(dim), device="cpu")
    length, tension, u = (wp.zeros((1, 1), dtype=real, requires_grad=True, device="cpu") for _ in range(3))
    wp.launch(length_kernel, (1, x.shape[1]), [cables, x], [length], device="cpu")
    with wp.Tape() as tape:
        wp.launch(tension_kernel, (1, 1), [cables, length, u], [tension], device="cpu")
    tape.backward(grads={tension: wp.full((1, 1), 1.0, dtype=real, device="cpu")})
    return float(u.grad.numpy()[0, 0])


part = positive_part()


@wp.kernel(module=wp.get_module("test_kinks_at_rest"))
def part_kernel(x: wp.array[real], width: real, y_out: wp.array[real]):
    """The positive part of x."""
    i = wp.tid()
    y_out[i] = part(x[i], width)


def test_the_positive_part_is_not_smoothed_and_grows_at_its_kink():
    """Values are those of max(x, 0); the derivative is 1 from a width below 0, and 0 beyond."""
    x = wp.array([-1.0, -0.11, -0.09, 0.0, 0.09, 2.0], dtype=real, requires_grad=True, device="cpu")
    y = wp.zeros(6, dtype=real, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(part_kernel, 6, [x, real(0.1)], [y], device="cpu")
    tape.backward(grads={y: wp.full(6, 1.0, dtype=real, device="cpu")})
    assert (y.numpy() == np.maximum(x.numpy(), 0.0)).all()
    assert x.grad.numpy().tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert {"float32": 1e-5, "float64": 1e-14}[precision] > ROUNDING


@pytest.mark.parametrize(("condition", "friction"), [("friction", 0.0), ("separate", None), ("slip", None)])
@pytest.mark.parametrize(("solver", "dim"), SPACES)
def test_a_body_at_rest_on_a_surface_without_friction_slides(solver, dim, condition, friction):
    """The derivative of its motion along the floor is that of a body that slides, whichever word it is said with."""
    if solver == "own":
        pytest.skip("no obstacles")
    height = {"mpm": 0.25}.get(solver, 0.2625 if "springs" in solver else 0.25)
    shape = HalfSpace((0.0,) * (dim - 1) + (height,), (0.0,) * (dim - 1) + (1.0,))
    rough = {} if friction is None else {"friction": friction}
    scene = block(dim, obstacles=(Obstacle(shape, condition, name="floor", **rough),))
    scene = type(scene)(
        scene.bodies, (), scene.obstacles, scene.gravity, scene.domain, loads=(Load("root", (0.0,) * dim),)
    )
    sim = Simulation(scene, SOLVERS[solver](1 / 8), 2e-3)
    load = sim.parameter("load").clone()
    push = torch.zeros_like(load)
    push[..., 0] = 1000.0 * 0.25**dim / load.shape[-2]

    def goes(a):
        return (
            sim.rollout(None, 2, load=load + torch.as_tensor(a, dtype=load.dtype) * push).final.velocity[..., 0].mean()
        )

    a = torch.zeros((), dtype=load.dtype, requires_grad=True)
    goes(a).backward()
    h, rounding = {"float64": (1e-2, 1e-6), "float32": (1.0, 2e-3)}[precision]
    assert float(a.grad) == pytest.approx(right_slope(goes, h), rel=rounding)


@pytest.mark.parametrize("integrator", ["bdf1", "sdirk2"])
@pytest.mark.parametrize("place", [0.0, 0.3, -1.0 / 3.0])
def test_what_just_touches_is_pushed(place, integrator):
    """A pusher at rest against a block moves it: rounding of their places does not decide, nor are they a step apart."""
    tip = Cloud(np.zeros((1, 3)), 1e-4)
    mass = Inertia(1.0, (0, 0, 0), (1, 1, 1))
    pusher = RigidBody("pusher", None, inertia=mass, position=(place + 0.1, 0, 0), points=tip, friction=0.0)
    block = RigidBody("block", Box((0.1, -0.05, -0.05), (0.2, 0.05, 0.05)), position=(place, 0, 0))
    rails = (
        Joint("rail", "prismatic", None, "pusher", axis=(1, 0, 0)),
        Joint("track", "prismatic", None, "block", axis=(1, 0, 0)),
    )
    law = Contact("pusher", "block", 1e8)
    scene = Scene((pusher, block), (Torque("push", "rail", 1.0),), joints=rails, contacts=(law,), gravity=(0, 0, 0))
    sim = Simulation(scene, Articulated(integrator), 2e-3, 10)

    def goes(u):
        return sim.rollout(u * torch.ones(5, 1, dtype=torch.float64), 5).final.q[0, 1]

    u = torch.zeros((), dtype=torch.float64, requires_grad=True)
    goes(u).backward()
    assert float(u.grad) > 1e-6
    assert float(u.grad) == pytest.approx(right_slope(lambda s: goes(torch.tensor(s)), 1.0), rel=1e-3)


def test_a_rigid_block_at_rest_without_friction_slides():
    """With a law that has a viscosity for sticking, but no friction: the block on a floor moves as freely as in the air."""

    def gain(height: float) -> float:
        mass = Inertia(2.0, (0, 0, 0), (1, 1, 1))
        corners = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
        block = RigidBody("block", None, inertia=mass, position=(0, 0, height), points=Cloud(corners, 1e-4))
        lift = Joint("lift", "prismatic", None, "lifted")
        rail = Joint("rail", "prismatic", "lifted", "block", axis=(1, 0, 0))
        lifted = RigidBody("lifted", None, inertia=mass)
        law = Contact("block", "floor", 1e8, 0.0, 0.0, 1e7)
        scene = Scene((lifted, block), (Torque("push", "rail", 1.0),), (floor(),), joints=(lift, rail), contacts=(law,))
        sim = Simulation(scene, Articulated(), 2e-3)
        u = torch.zeros((), dtype=torch.float64, requires_grad=True)
        sim.rollout(u * torch.ones(3, 1, dtype=torch.float64), 3).final.q[0, 1].backward()
        return float(u.grad)

    assert gain(0.0) == pytest.approx(gain(0.5), rel=1e-9)


def test_training_that_cannot_begin_says_so():
    """A cable that is twice as long as its route has no effect up to u = 0.5, and a fit from 0 is warned of."""
    cable = Cable("cable", ((0.28, 0.28), (0.47, 0.47)), 200.0, 0.6)
    sim = Simulation(block(2, actuators=(cable,), gravity=(0.0, 0.0)), SOLVERS["springs"](1 / 8), 4e-3)
    u = torch.zeros(2, 1, dtype=sim.state().position.dtype, requires_grad=True)

    def loss():
        return -sim.rollout(u, 2).final.position.square().sum()

    with pytest.warns(UserWarning, match=r"exactly zero in the first iteration.*cable is slack"):
        fit([u], loss, iterations=1, progress=False)
    assert not u.detach().any()
    with torch.no_grad():
        u += 0.8
    fit([u], loss, iterations=1, progress=False)  # warnings are errors
    assert (u.detach() < 0.8).all()
