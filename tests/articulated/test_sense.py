"""Readings against what is known otherwise, and their gradients."""

import numpy as np
import torch
import warp as wp
from cases import dynamics
from test_articulated_gradients import direction_of, scuffle, start_of

from warpbots.simulation import Simulation
from warpbots.solvers import Articulated


def stirred(sim: Simulation, rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """A state in contact, and all that its readings depend on."""
    inputs = start_of(sim, rng, 4)
    control = inputs.pop("control")
    start = sim.state(q=inputs.pop("q"), qd=inputs.pop("qd"))
    state = sim.rollout(control, 4, start, **inputs).final
    return inputs | {"q": state.q, "qd": state.qd, "control": control[:, 0]}


def read(sim: Simulation, inputs: dict[str, torch.Tensor]):
    inputs = dict(inputs)
    state = sim.state(q=inputs.pop("q"), qd=inputs.pop("qd"))
    return sim.sense(state, inputs.pop("control"), **inputs)


def test_gradients_of_readings(rng):
    sim = Simulation(scuffle("box"), Articulated(), dt=0.004)
    inputs = stirred(sim, rng)
    readings = read(sim, inputs)
    assert (readings.contact_normal > 0).sum() > 3
    weights = {n: torch.as_tensor(rng.normal(size=t.shape)) / t.abs().max() for n, t in vars(readings).items()}

    def loss(values):
        return sum((weights[n] * t).sum() for n, t in vars(read(sim, values)).items())

    leaves = {n: t.detach().clone().requires_grad_() for n, t in inputs.items()}
    gradients = torch.autograd.grad(loss(leaves), list(leaves.values()))
    for (name, value), gradient in zip(inputs.items(), gradients, strict=True):
        d = direction_of(name, value.detach(), rng)
        with torch.no_grad():
            ahead, behind = (loss({**inputs, name: value + s * 1e-6 * d}) for s in (1, -1))
        slope, difference = float((gradient * d).sum()), float(ahead - behind) / 2e-6
        assert abs(slope - difference) < 1e-5 * abs(slope) + 1e-7 * float((gradient * d).abs().sum()) + 1e-8, name


def test_energy_is_that_of_the_mass_matrix(rng):
    sim = Simulation(scuffle("box"), Articulated(), dt=0.004)
    v = torch.as_tensor(rng.normal(size=sim.state().qd.shape))
    state = sim.state(qd=v)
    own = sim.solver.state(sim.model)
    own.qd.assign(v.numpy())
    M = dynamics(sim.model, own).mass_matrix[0] - np.diag(sim.model.armature.numpy()[0])
    kinetic = float(sim.sense(state).kinetic_energy.sum())
    assert np.isclose(kinetic, 0.5 * v[0].numpy() @ M @ v[0].numpy(), rtol=1e-12)


def test_momenta_are_those_of_moving_bodies(rng):
    """p = m v_c, and L = c x p + R I R^T w about the origin of the world."""
    sim = Simulation(scuffle("box"), Articulated(), dt=0.004)
    r = sim.sense(sim.state(qd=torch.as_tensor(rng.normal(size=sim.state().qd.shape))))
    speed = r.velocity + torch.linalg.cross(r.angular_velocity, r.center - r.position)
    p = sim.parameter("mass")[..., None] * speed
    spin = torch.einsum("wbij,wbjk,wblk,wbl->wbi", r.rotation, sim.parameter("inertia"), r.rotation, r.angular_velocity)
    assert torch.allclose(r.momentum, p, rtol=1e-12, atol=1e-12)
    assert torch.allclose(r.angular_momentum, torch.linalg.cross(r.center, p) + spin, rtol=1e-12, atol=1e-12)


def test_velocities_are_rates_of_poses(rng):
    sim = Simulation(scuffle("box"), Articulated("sdirk2"), dt=1e-6)
    velocity = torch.as_tensor(rng.normal(size=sim.state().qd.shape))
    start = sim.state(qd=velocity)
    end = sim.step(start, torch.zeros(sim.channels, dtype=torch.float64))
    a, b = sim.sense(start), sim.sense(end)
    assert torch.allclose((b.position - a.position) / 1e-6, (a.velocity + b.velocity) / 2, atol=1e-5)
    spin = (b.rotation - a.rotation) @ a.rotation.mT / 1e-6
    rate = torch.stack([spin[..., 2, 1], spin[..., 0, 2], spin[..., 1, 0]], dim=-1)
    assert torch.allclose(rate, (a.angular_velocity + b.angular_velocity) / 2, atol=1e-5)


def test_forces_are_normal_and_shear(rng):
    """The force on a point in one solid is its two parts together, and what pushes is not negative."""
    sim = Simulation(scuffle("mesh"), Articulated(), dt=0.004)
    r = read(sim, stirred(sim, rng))
    touching = r.contact_normal > 0
    assert touching.any()
    assert (r.contact_normal >= 0).all()
    size = r.contact_force.norm(dim=-1) ** 2
    assert torch.allclose(
        size[touching], (r.contact_normal**2 + r.contact_shear.norm(dim=-1) ** 2)[touching], rtol=1e-6
    )
    assert (r.contact_force[~touching] == 0).all()


def test_readings_on_a_raw_tape_keep_their_values(rng):
    """`wp.Tape` over `sense`, without torch: the gradient of the whole push, and readings that are still there."""
    sim = Simulation(scuffle("box"), Articulated(), dt=0.004)
    found = stirred(sim, rng)
    solver, model = sim.solver, sim.model
    state = solver.state(model, requires_grad=True)
    state.q.assign(found["q"].numpy())
    state.qd.assign(found["qd"].numpy())
    control = wp.zeros((1, model.channels), dtype=wp.float64, device="cpu")
    readings = solver.readings(model, requires_grad=True)
    with wp.Tape() as tape:
        solver.sense(model, state, control, readings)
    before = readings.contact_normal.numpy().copy()
    assert (before > 0).any()
    tape.backward(grads={readings.contact_normal: wp.ones_like(readings.contact_normal)})
    assert (readings.contact_normal.numpy() == before).all()
    push = []
    d = np.zeros(state.q.shape)
    d[0, model.robot.coordinates["stone"].start + 2] = 1.0
    gradient = float((state.q.grad.numpy() * d).sum())
    for h in (1e-7, -1e-7):
        state.q.assign(found["q"].numpy() + h * d)
        solver.sense(model, state, control, readings)
        push.append(readings.contact_normal.numpy().sum())
    assert abs((push[0] - push[1]) / 2e-7 / gradient - 1.0) < 1e-5
