"""What a lattice senses: closed forms, what a motion conserves, and gradients."""

import numpy as np
import pytest
import torch
from cases import LATTICES, block, busy, stirred, to_numpy, worn

from warpbots.scene import Box, Constraint, Material, PrescribedMotion, Scene, SoftBody, Truss, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring

E = 1e6


def bar(dim: int, spacing: float = 0.1) -> Simulation:
    """A bar of Poisson's ratio 1/4 along x, free in space."""
    body = SoftBody("bar", Box((0.0,) * dim, (0.8, 0.4, 0.4)[:dim]), Material(E, 0.25, 1000.0))
    return Simulation(Scene([body], gravity=(0.0,) * dim), MassSpring(spacing), 1e-5)


def inside(sim: Simulation) -> np.ndarray:
    """Masses with springs on all sides."""
    x = sim.model.lattice.position
    return ((x > x.min(axis=0) + 1e-6) & (x < x.max(axis=0) - 1e-6)).all(axis=1)


@pytest.mark.verification
@pytest.mark.parametrize("dim", [2, 3])
def test_uniaxial_stress(dim):
    """E e along a bar that is stretched by e and as thin as it then is, in 2D of the solid in plane strain."""
    sim, e = bar(dim), 1e-6
    modulus, ratio = (E, 0.25) if dim == 3 else (E / (1 - 0.25**2), 1 / 3)
    stretch = torch.tensor([1.0 + e, 1.0 - ratio * e, 1.0 - ratio * e][:dim], dtype=torch.float64)
    read = sim.sense(sim.state(position=stretch * sim.state().position))
    stress = to_numpy(read.stress)[0]
    expected = np.zeros((dim, dim))
    expected[0, 0] = modulus * e
    np.testing.assert_allclose(
        stress[inside(sim)], np.broadcast_to(expected, stress[inside(sim)].shape), atol=1e-5 * modulus * e
    )
    volume = sim.model.lattice.volume
    np.testing.assert_allclose(np.einsum("n,nij->ij", volume, stress) / volume.sum(), expected, atol=1e-5 * modulus * e)
    along = np.ptp(sim.model.lattice.position[sim.model.lattice.ends], axis=1)[:, 1:].max(axis=1) == 0
    np.testing.assert_allclose(to_numpy(read.strain)[0, along], e, rtol=1e-6)


@pytest.mark.verification
@pytest.mark.parametrize("dim", [2, 3])
def test_stress_is_the_derivative_of_the_energy(dim):
    """At large strain, of a random lattice: d(energy) = sum V s : dF F^-1, with the volume that the masses then have."""
    body = SoftBody("body", Box((0.0,) * dim, (0.3,) * dim), Material(E, 0.25, 1000.0))
    sim = Simulation(Scene([body], gravity=(0.0,) * dim), MassSpring(0.07, "random"), 1e-5)
    rng = np.random.default_rng(0)
    F = torch.as_tensor(np.eye(dim) + 0.3 * rng.uniform(-1, 1, (dim, dim))).requires_grad_()
    read = sim.sense(sim.state(position=sim.state().position @ F.T))
    (slope,) = torch.autograd.grad(read.elastic_energy.sum(), F)
    volume = torch.as_tensor(sim.model.lattice.volume) * torch.linalg.det(F.detach())
    kirchhoff = torch.einsum("n,nij->ij", volume, read.stress[0].detach().double())
    torch.testing.assert_close(slope @ F.detach().T, kirchhoff, rtol=1e-9, atol=1e-9 * float(kirchhoff.abs().max()))


def test_a_hanging_chain():
    """Each bar carries what hangs below it; a mass has the mean, by length, of its bars' tensions over their section."""
    joints = [[0.0, -0.1 * i] for i in range(5)]
    chain = Truss(joints, [[i, i + 1] for i in range(4)], 0.01)
    top = Box((-0.01, -0.01), (0.01, 0.01))
    body = SoftBody("chain", chain, Material(1e5, 0.25, 1000.0), regions={"top": top})
    scene = Scene([body], constraints=[Constraint("top")], gravity=(0.0, -10.0))
    sim = Simulation(scene, MassSpring(1.0, drag=20.0), 5e-3, substeps=None)
    read = sim.sense(sim.rollout(None, 400).final)
    weight = 10.0 * sim.model.lattice.mass
    below = np.array([weight[i + 1 :].sum() for i in range(4)])
    np.testing.assert_allclose(to_numpy(read.tension)[0], below, rtol=1e-4)
    np.testing.assert_allclose(to_numpy(read.strain)[0], below / (1e5 * 0.02), rtol=1e-3)
    stress = to_numpy(read.stress)[0]
    length = 0.1 * (1.0 + below / (1e5 * 0.02))
    mean = ((below * length)[1:] + (below * length)[:-1]) / (length[1:] + length[:-1])
    np.testing.assert_allclose(stress[1:-1, 1, 1], mean / 0.02, rtol=1e-4)
    np.testing.assert_allclose(stress[-1, 1, 1], below[-1] / 0.02, rtol=1e-4)
    assert np.abs(stress[:, 0]).max() < 1e-6 * stress.max()


@pytest.mark.parametrize("stiffness", [0.0, 1e6])
@pytest.mark.parametrize("friction", [0.5, 0.1])
def test_a_block_presses_on_a_floor_with_its_weight(stiffness, friction):
    """At rest, or sliding with the friction of its weight, under gravity that leans over by 0.3 of itself."""
    body = SoftBody("block", Box((0.0, 0.0), (0.2, 0.2)), Material(1e5, 0.25, 1000.0, damping=1e-2))
    scene = Scene([body], obstacles=[floor(dim=2, friction=friction)], gravity=(3.0, -10.0))
    sim = Simulation(scene, MassSpring(0.1, contact_stiffness=stiffness, drag=10.0), 5e-3, substeps=None)
    state = sim.rollout(None, 400).final
    read, mass = sim.sense(state), float(sim.model.lattice.mass.sum())
    force, slides = to_numpy(read.contact_force)[0, 0], friction < 0.3
    assert force == pytest.approx([mass * (1.0 if slides else 3.0), -10.0 * mass], rel=2e-3)
    assert (float(read.momentum[0, 0]) > 0.1 * mass) == slides
    masses, x = sim.model.lattice.mass, to_numpy(state.position)[0].astype(float)
    x, y = masses @ x / mass  # no torque about the centre of mass, for the block does not turn
    torque = float(read.contact_torque[0, 0])
    assert torque == pytest.approx(x * force[1] - y * force[0], abs=5e-3 * mass * 10.0 * 0.1)
    assert abs(torque) > 0.5 * mass


@pytest.mark.verification
@pytest.mark.parametrize("dim", [2, 3])
def test_a_free_motion_conserves(dim):
    """Momentum and angular momentum to rounding, energy to the order of Runge and Kutta's method."""
    scene = block(dim, gravity=(0.0,) * dim)
    sim = Simulation(scene, MassSpring(0.125, integrator="rk4"), 1e-3, substeps=4)
    velocity = torch.as_tensor(np.random.default_rng(0).normal(size=sim.state().velocity.shape))
    start = sim.state(velocity=velocity)
    before, after = sim.sense(start), sim.sense(sim.rollout(None, 100, start).final)
    for name in ("momentum", "angular_momentum"):
        torch.testing.assert_close(getattr(after, name), getattr(before, name), rtol=1e-9, atol=1e-9)
    mass = torch.as_tensor(sim.model.lattice.mass)
    torch.testing.assert_close(before.momentum, torch.einsum("n,wni->wi", mass, velocity), rtol=1e-12, atol=1e-12)
    spin = torch.einsum("n,wni,wnj->wij", mass, start.position, velocity)
    spin = (spin - spin.mT)[0, [1, 2, 0], [2, 0, 1]] if dim == 3 else (spin - spin.mT)[0, 0, 1]
    torch.testing.assert_close(before.angular_momentum[0], spin, rtol=1e-12, atol=1e-12)
    total = [float(r.kinetic_energy + r.elastic_energy) for r in (before, after)]
    assert float(after.elastic_energy) > 0.1 * total[0]
    assert total[1] == pytest.approx(total[0], rel=1e-4)


def test_potential_energy_becomes_motion():
    """A free fall by 1 m from rest; energies of the masses that a rollout had."""
    sim = Simulation(block(2, gravity=(0.0, -8.0)), MassSpring(0.125), 1e-3)
    low, high = (
        sim.state(velocity=torch.tensor([0.0, -4.0])),
        sim.state(position=sim.state().position + torch.tensor([0.0, 1.0])),
    )
    a, b = sim.sense(high), sim.sense(low)
    assert float(a.potential_energy - b.potential_energy) == pytest.approx(float(b.kinetic_energy), rel=1e-5)
    heavy = sim.sense(low, mass=2.0 * sim.parameter("mass"), gravity=torch.tensor([0.0, -4.0]))
    assert float(heavy.kinetic_energy) == pytest.approx(2.0 * float(b.kinetic_energy), rel=1e-6)
    assert float(heavy.potential_energy) == pytest.approx(float(b.potential_energy), rel=1e-6)


@pytest.mark.verification
@pytest.mark.parametrize(("solver", "dim"), [("springs", 2), ("springs-verlet-random", 3)])
def test_gradients_of_readings(solver, dim, rng):
    """With every actuator, plastic and breaking springs, damping and both kinds of surfaces, against differences."""
    sim = Simulation(worn(busy(dim, solver=solver)), LATTICES[solver](1 / 8), 6e-3, substeps=None, worlds=2)
    inputs = stirred(sim, rng, 1)
    inputs["control"] = inputs["control"][:, 0]
    fields = vars(sim.state())

    def read(values):
        state = sim.state(**{n: v for n, v in values.items() if n in fields})
        parameters = {n: v for n, v in values.items() if n not in (*fields, "control")}
        return {n: t for n, t in vars(sim.sense(state, values["control"], **parameters)).items() if t.numel()}

    found = read(inputs)
    assert all((r.abs().amax() > 0).all() for r in found.values())
    weights = {n: torch.as_tensor(rng.normal(size=t.shape)) / t.abs().max() for n, t in found.items()}

    def loss(values):
        return sum((weights[n] * t).sum() for n, t in read(values).items())

    leaves = {n: t.clone().requires_grad_() for n, t in inputs.items()}
    for name, gradient in zip(leaves, torch.autograd.grad(loss(leaves), list(leaves.values())), strict=True):
        if name == "yield_strain":  # of the next step
            continue
        assert (gradient != 0).any(), f"{name} has no effect here"
        d = torch.as_tensor(rng.uniform(-1, 1, gradient.shape)) * inputs[name].abs().clamp(min=1e-3)
        slope = float((gradient * d).sum())
        difference = (
            loss({**inputs, name: inputs[name] + 1e-6 * d}) - loss({**inputs, name: inputs[name] - 1e-6 * d})
        ) / 2e-6
        print(name, slope, abs(slope - float(difference)))
        assert abs(slope - float(difference)) < 1e-6 * abs(slope) + 1e-9 * float((gradient * d).abs().sum()) + 1e-8, (
            name
        )


@pytest.mark.parametrize("moving", [False, True])
def test_a_clamp_carries_the_weight_of_a_bar_and_its_torque(moving):
    """A bar on a wall, at rest: the force on the clamp is the weight, its torque the moment of the weight."""
    motion = PrescribedMotion([0.0, 10.0], [[0, 0, 0], [2.0, 1.0, 0.5]]) if moving else None
    bar = SoftBody(
        "bar", Box((0, 0, 0), (0.4, 0.2, 0.2)), Material(1e6, 0.25, 1000.0, damping=2e-2),
        regions={"end": Box((-1, -1, -1), (0.01, 1, 1))}, velocity=(0.2, 0.1, 0.05) if moving else (0.0, 0.0, 0.0),
    )  # fmt: skip
    scene = Scene([bar], constraints=[Constraint("end", motion=motion)], gravity=(0.0, 0.0, -10.0))
    sim = Simulation(scene, MassSpring(0.1), 5e-3, substeps=None)
    state = sim.rollout(None, 200).final
    read, mass = sim.sense(state), sim.model.lattice.mass
    weight = 10.0 * mass.sum()
    assert to_numpy(read.constraint_force)[0, 0] == pytest.approx([0.0, 0.0, -weight], abs=5e-3 * weight)
    center = mass @ to_numpy(state.position)[0] / mass.sum()
    torque = np.cross(center, [0.0, 0.0, -weight])
    assert to_numpy(read.constraint_torque)[0, 0] == pytest.approx(torque, abs=5e-3 * weight * 0.2)
