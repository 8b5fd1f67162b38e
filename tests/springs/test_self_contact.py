"""Masses that keep their distance: two of them exactly, two bodies, one body that is pressed together, and gradients."""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import DIMENSIONS, to_numpy

from warpbots.scene import Box, Constraint, Material, Obstacle, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring.self_contact import radii, stiffnesses
from warpbots.solvers.mass_spring.stage_forces import refuse_captured_grid

MATTER = Material(1e4, 0.25, 1000.0)


def two_blocks(dim: int, speed: float = 0.3) -> Scene:
    """Two cubes of 0.1 m that fly at each other, a little aside of one another, without gravity."""
    left = SoftBody("left", Box((0.0,) * dim, (0.1,) * dim), MATTER, velocity=(speed, *(0.0,) * (dim - 1)))
    lower = np.array([0.13, *(0.012,) * (dim - 1)])
    right = SoftBody("right", Box(lower, lower + 0.1), MATTER, velocity=(-speed, *(0.0,) * (dim - 1)))
    return Scene([left, right], gravity=(0.0,) * dim)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_body_that_falls_through_another_one_is_named(dim):
    """Without contact between masses. Held, aside, thrown, or under a shelf: no word, because it may not fall so."""
    low, high = ((0.0,) * dim, (0.1,) * dim), ((0.0,) * (dim - 1) + (0.2,), (0.1,) * (dim - 1) + (0.3,))
    matter = dataclasses.replace(MATTER, youngs_modulus=1e5)
    mat, block = (SoftBody(n, Box(*c), matter, {n: Box(*c)}) for n, c in (("mat", low), ("block", high)))
    solver, ground = MassSpring(0.05), floor(dim=dim)
    with pytest.warns(UserWarning, match=r"'block' falls through SoftBody 'mat', .* use MassSpring\(collision=1\.0\)"):
        Simulation(Scene([block, mat], obstacles=[ground]), solver)
    Simulation(Scene([block, mat], obstacles=[ground]), dataclasses.replace(solver, collision=1.0))
    aside = dataclasses.replace(block, shape=Box(*(np.add(c, (0.3,) + (0.0,) * (dim - 1)) for c in high)), regions=None)
    shelf = Obstacle(Box((0.0,) * (dim - 1) + (0.11,), (0.1,) * (dim - 1) + (0.19,)), name="shelf")
    thrown = dataclasses.replace(block, velocity=(1.0,) + (0.0,) * (dim - 1))
    for scene in (
        Scene([block, mat], constraints=[Constraint("block")]),
        Scene([aside, mat]),
        Scene([thrown, mat]),
        Scene([block, mat], gravity=(0.0,) * dim),
        Scene([block, mat], obstacles=[shelf]),
    ):
        Simulation(scene, MassSpring(0.025))  # a warning is an error in tests


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_body_that_sinks_into_a_weak_surface_is_named(dim):
    """By more than its own size. It does sink; held, above nothing, or on a stiffer surface: no word."""
    box = Box((0.0,) * dim, (0.1,) * dim)
    block, solver = SoftBody("block", box, MATTER, {"all": box}), MassSpring(0.05, contact_stiffness=1e3)
    weak = Scene([block], obstacles=[floor(dim=dim)])
    said = (
        r"'block' sinks .* m into Obstacle 'floor' by its weight, .* size of 0\.1 m: use MassSpring\(contact_stiffness"
    )
    with pytest.warns(UserWarning, match=said):
        sim = Simulation(weak, solver, 1e-2)
    assert to_numpy(sim.rollout(None, 50).final.position)[0, :, -1].max() < -0.1
    Simulation(weak, dataclasses.replace(solver, contact_stiffness=1e6))
    Simulation(dataclasses.replace(weak, obstacles=[]), solver)
    Simulation(dataclasses.replace(weak, constraints=[Constraint("all")]), solver)  # a warning is an error in tests


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_two_bodies_bounce(dim):
    """They part again, keep their momentum, and those that do not collide pass through each other."""
    apart = []
    for collision in (0.0, 4.0):
        sim = Simulation(two_blocks(dim), MassSpring(0.025, collision=collision), 1e-3, substeps=8)
        made, end = sim.model.lattice, sim.rollout(None, 400).final
        v, m = to_numpy(end.velocity)[0], made.mass
        scale = m.sum()
        assert np.abs(m @ v).max() < 1e-4 * scale
        x = to_numpy(end.position)[0]
        apart.append(x[made.body == 1, 0].mean() - x[made.body == 0, 0].mean())
    assert apart[0] < 0.0
    assert apart[1] > 0.1


@pytest.mark.verification
@pytest.mark.parametrize("integrator", ["verlet", "rk4"])
def test_a_collision_keeps_the_energy(integrator):
    """Before and after, to 1 % in motion and ringing together."""
    sim = Simulation(two_blocks(2), MassSpring(0.025, collision=4.0, integrator=integrator), 1e-3, substeps=10)
    before, after = sim.sense(sim.state()), sim.sense(sim.rollout(None, 400).final)
    total = [float(r.kinetic_energy + r.elastic_energy) for r in (before, after)]
    assert total[1] == pytest.approx(total[0], rel=0.01)
    assert float(after.elastic_energy) > 0.01 * total[0]


def test_nothing_collides_at_rest():
    """A free body at rest stays as it is to the last bit, random lattice or not."""
    for kind in ("voxel", "random"):
        scene = Scene([SoftBody("body", Box((0.0,) * 3, (0.3,) * 3), MATTER)], gravity=(0.0,) * 3)
        sims = [Simulation(scene, MassSpring(0.05, kind, collision=c), 1e-3) for c in (0.0, 1.0)]
        ends = [sim.rollout(None, 20).final.position for sim in sims]
        assert torch.equal(*ends)


def test_a_squeezed_pair_feels_the_law():
    """f = k (r_i + r_j - l) along the line between two masses, on top of what their springs do."""
    scene = Scene([SoftBody("body", Box((0.0, 0.0), (0.1, 0.1)), MATTER)], gravity=(0.0, 0.0))
    dt = 1e-4
    free, stiff = (Simulation(scene, MassSpring(0.1, collision=c), dt) for c in (0.0, 2.0))
    made = free.model.lattice
    x = free.state().position.clone()
    x[0, 1] = x[0, 0] + 0.4 * (x[0, 1] - x[0, 0])
    kick = [s.rollout(None, 1, s.state(position=x)).final.velocity[0] for s in (free, stiff)]
    r, k = radii(made), 2.0 * stiffnesses(made)
    d = to_numpy(x)[0, 1] - to_numpy(x)[0, 0]
    length = np.linalg.norm(d)
    push = (k[0] + k[1]) / 2 * (r[0] + r[1] - length) * d / length * dt
    np.testing.assert_allclose(to_numpy(kick[1] - kick[0])[1], push / made.mass[1], rtol=1e-3)
    np.testing.assert_allclose(to_numpy(kick[1] - kick[0])[0], -push / made.mass[0], rtol=1e-3)
    np.testing.assert_allclose(to_numpy(kick[1] - kick[0])[2:], 0.0, atol=1e-5)


def test_masses_at_one_place_push_nowhere():
    """Neither collisions nor springs know a direction there."""
    scene = Scene([SoftBody("body", Box((0.0, 0.0), (0.1, 0.1)), MATTER)], gravity=(0.0, 0.0))
    sim = Simulation(scene, MassSpring(0.1, collision=2.0), 1e-4)
    x = torch.zeros_like(sim.state().position).requires_grad_()
    v = sim.rollout(None, 1, sim.state(position=x)).final.velocity
    assert (v == 0.0).all()
    assert torch.isfinite(torch.autograd.grad((v**2).sum(), x)[0]).all()


def test_bodies_that_start_pressed_together_are_named():
    """Their masses would be smaller than the gaps of a face; a spacing apart they are not, and nor is one alone."""
    for gap, spoken in ((0.0, "0 instead of 0.05"), (0.03, "0.03 instead of 0.05"), (0.05, None)):
        boxes = [Box((0.0, 0.0), (0.2, 0.1)), Box((0.0, 0.1 + gap), (0.2, 0.2 + gap))]
        scene = Scene([SoftBody(f"body{i}", box, MATTER) for i, box in enumerate(boxes)])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            MassSpring(0.05, collision=1.0).build(scene)
        assert [spoken in str(w.message) for w in said] == ([] if spoken is None else [True])


@pytest.mark.filterwarnings("ignore:MassSpring.collision")
@pytest.mark.verification
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_gradient_through_a_collision(dim, integrator, rng):
    """To where two colliding bodies are and how fast, and to their springs, against differences; two worlds."""
    solver = MassSpring(0.05, collision=1.0, integrator=integrator)
    sim = Simulation(two_blocks(dim), solver, 1e-3, substeps=4, worlds=2)
    rest = sim.state()
    inputs = {
        "position": rest.position + 1e-3 * torch.as_tensor(rng.normal(size=rest.position.shape)),
        "velocity": 3.0 * rest.velocity + 0.1 * torch.as_tensor(rng.normal(size=rest.position.shape)),
        "stiffness": sim.parameter("stiffness"),
    }
    weights = torch.as_tensor(rng.normal(size=rest.position.shape))

    def loss(position, velocity, stiffness):
        start = sim.state(position=position, velocity=velocity)
        return (weights * sim.rollout(None, 25, start, stiffness=stiffness).final.position).sum()

    with torch.no_grad():  # they do touch
        parted = Simulation(two_blocks(dim), MassSpring(0.05, integrator=integrator), 1e-3, substeps=4, worlds=2)
        start = parted.state(position=inputs["position"], velocity=inputs["velocity"])
        assert abs((weights * parted.rollout(None, 25, start).final.position).sum() - loss(**inputs)) > 1e-4
    wanted = [t.clone().requires_grad_() for t in inputs.values()]
    gradient = torch.autograd.grad(loss(*wanted), wanted)
    for name, g, size in zip(inputs, gradient, (0.01, 0.1, 1.0), strict=True):
        d = size * torch.as_tensor(rng.uniform(-1, 1, g.shape)) * (inputs[name] if name == "stiffness" else 1.0)
        with torch.no_grad():
            ends = [loss(**inputs | {name: inputs[name] + h * d}) for h in (1e-6, -1e-6)]
        difference = float(ends[0] - ends[1]) / 2e-6
        assert float((g * d).sum()) == pytest.approx(difference, rel=1e-6, abs=1e-8), name


def test_a_grid_is_no_part_of_a_graph_of_a_gpu():
    """Graphs of two simulations would share one; on a CPU, and outside of a capture, there is nothing to share."""
    for cuda, capturing in ((False, True), (True, False)):
        refuse_captured_grid(SimpleNamespace(is_cuda=cuda, is_capturing=capturing))
    with pytest.raises(RuntimeError, match="cannot be part of a graph"):
        refuse_captured_grid(SimpleNamespace(is_cuda=True, is_capturing=True))
