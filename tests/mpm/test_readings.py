"""What MPM measures of a state, against closed forms and against what a step does."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from cases import ACTUATORS, DIMENSIONS, block, busy, fields_of, held, stirred, to_numpy

from warpbots.numerics import precision, real, vector
from warpbots.scene import CONDITIONS, Box, Constraint, Material, PrescribedMotion, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM
from warpbots.solvers.matter_readings import add_up, adj_add_up, terms_type

DX, SIDE, RHO, E, NU = 1 / 12, 0.25, 1000.0, 1e4, 0.3
ROUNDING = {"float32": 1e-5, "float64": 1e-13}[precision]


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_energies_and_momenta_of_an_affine_motion(dim, rng):
    """Of x' = v + A (x - c): sums over particles at x of masses m, each with a spline of the variance dx^2/4."""
    sim = Simulation(block(dim), MPM(DX), 5e-3, 5, worlds=2)
    rest = sim.state()
    x, m = to_numpy(rest.position), RHO * SIDE**dim / rest.position.shape[1]
    A, v = rng.normal(size=(2, dim, dim)), rng.normal(size=(2, 1, dim))
    u = v + np.einsum("wij,wpj->wpi", A, x - 0.375)
    like = rest.position
    state = sim.state(velocity=torch.as_tensor(u).to(like), velocity_gradient=torch.as_tensor(A[:, None]).to(like))
    found = sim.sense(state)
    spread = np.eye(dim) * DX**2 / 4
    moment = m * (np.einsum("wpi,wpj->wij", u, x) + x.shape[1] * A @ spread)
    pairs = [(1, 0)] if dim == 2 else [(2, 1), (0, 2), (1, 0)]
    L = np.stack([moment[:, i, j] - moment[:, j, i] for i, j in pairs], axis=-1)
    kinetic = m / 2 * ((u**2).sum((1, 2)) + x.shape[1] * np.einsum("wij,jk,wik->w", A, spread, A))
    expected = {
        "kinetic_energy": kinetic,
        "elastic_energy": np.zeros(2),
        "potential_energy": m * 9.81 * x[..., -1].sum(1),
        "momentum": m * u.sum(1),
        "angular_momentum": L[:, 0] if dim == 2 else L,
    }
    for name, value in expected.items():
        scale = max(np.abs(value).max(), kinetic.max())
        np.testing.assert_allclose(to_numpy(getattr(found, name)), value, atol=ROUNDING * scale, err_msg=name)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_strain_and_stress_of_a_uniform_deformation(dim, rng):
    """Neo-Hookean matter, driven and damped: the formulas of the law, of Kelvin and Voigt, and of a muscle."""
    muscle = ACTUATORS["muscle"](dim)
    sim = Simulation(block(dim, actuators=(muscle,), damping=2e-3), MPM(DX), 5e-3, 5)
    like = sim.state().position
    F, C = np.eye(dim) + 0.2 * rng.uniform(-1, 1, (dim, dim)), rng.normal(size=(dim, dim))
    state = sim.state(deformation=torch.as_tensor(F).to(like), velocity_gradient=torch.as_tensor(C).to(like))
    found = sim.sense(state, torch.tensor([0.5]).to(like))
    mu, lam, J, I = E / (2 * (1 + NU)), E * NU / ((1 + NU) * (1 - 2 * NU)), np.linalg.det(F), np.eye(dim)
    d, n = (C + C.T) / 2, np.array(muscle.direction)
    passive = mu * (F @ F.T - I) + lam * np.log(J) * I + 2e-3 * (2 * mu * d + lam * np.trace(d) * I)
    driven = passive + 0.5 * muscle.max_stress * F @ np.outer(n, n) @ F.T
    root = sim.region("root").cpu().numpy()
    stress, strain = to_numpy(found.stress)[0], to_numpy(found.strain)[0]
    scale = ROUNDING * np.abs(driven).max()
    np.testing.assert_allclose(stress[root], np.broadcast_to(driven / J, stress[root].shape), atol=10 * scale)
    np.testing.assert_allclose(stress[~root], np.broadcast_to(passive / J, stress[~root].shape), atol=10 * scale)
    np.testing.assert_allclose(strain, np.broadcast_to((F.T @ F - I) / 2, strain.shape), atol=ROUNDING)
    Psi = mu / 2 * (np.trace(F.T @ F) - dim) - mu * np.log(J) + lam / 2 * np.log(J) ** 2
    assert to_numpy(found.elastic_energy)[0] == pytest.approx(Psi * SIDE**dim, rel=100 * ROUNDING)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_block_at_rest_weighs_m_g(condition):
    """And a floor that is tilted by ten degrees, as gravity is, carries its weight along it, too, unless it slips."""
    tilted = 9.81 * np.array((np.sin(np.radians(10.0)), -np.cos(np.radians(10.0))))
    holds = condition in ("sticky", "friction")
    gravity = tuple(tilted) if holds else (0.0, -9.81)
    ground = dataclasses.replace(floor(height=0.25, dim=2, friction=0.5), condition=condition)
    scene = block(2, obstacles=(ground,), gravity=gravity, damping=0.05)
    sim = Simulation(scene, MPM(DX), 5e-3, 5)
    with torch.no_grad():
        end = sim.rollout(None, 300).final
        force = to_numpy(sim.sense(end).contact_force)
    print(force, to_numpy(end.velocity).max())
    weight = RHO * SIDE**2 * np.array(gravity)
    np.testing.assert_allclose(force[0, 0], weight, atol=2e-3 * np.abs(weight).max())


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("clamped", [False, True])
def test_forces_are_what_a_step_gives_to_supports(dim, clamped, rng):
    """In a step of their interval, momentum changes by h (weight + loads + cables - forces on obstacles and
    constraints), and cables have no resultant; in the middle of a collision with a floor and a wall. So does angular
    momentum, apart from the torques of loads.
    """
    scene = held(busy(dim)) if clamped else busy(dim)
    interval = Simulation(scene, MPM(DX), 1e-3).model.contact_interval
    sim = Simulation(scene, MPM(DX), interval, 1, worlds=2)
    inputs = stirred(sim, rng, 1)
    names = fields_of(sim.state())
    state = sim.state(**{n: inputs[n] for n in names})
    u, parameters = inputs["control"][:, 0], {n: inputs[n] for n in sim.parameters()}
    with torch.no_grad():
        before = sim.sense(state, u, **parameters)
        after = sim.sense(sim.step(state, u, **parameters), u, **parameters)
    mass = (inputs["density"] * inputs["volume"]).sum(1, keepdim=True)
    outer = mass * inputs["gravity"] + inputs["load"].sum(1)
    assert (before.contact_force.abs().amax((0, 2)) > 1.0).all(), "an obstacle is not met"
    assert before.constraint_force.shape == (2, len(scene.constraints), dim)
    assert (before.constraint_force.abs().amax(2) > 1e-2 * before.contact_force.abs().max()).all()
    expected = interval * (outer - before.contact_force.sum(1) - before.constraint_force.sum(1))
    gained, scale = after.momentum - before.momentum, 10.0 * float(before.momentum.abs().max())
    torch.testing.assert_close(gained, expected, rtol=0.0, atol=ROUNDING * scale)
    push = to_numpy(inputs["load"] + (inputs["density"] * inputs["volume"])[..., None] * inputs["gravity"][:, None])
    torque = _torque(to_numpy(inputs["position"]), push).sum(1)
    torque -= sum(to_numpy(r).sum(1) for r in (before.contact_torque, before.constraint_torque))
    gained = to_numpy(after.angular_momentum - before.angular_momentum)
    np.testing.assert_allclose(gained, interval * torque, atol=ROUNDING * scale)


def _torque(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    """x × f: numbers in 2D, vectors in 3D."""
    return np.cross(x, f) if x.shape[-1] == 3 else x[..., 0] * f[..., 1] - x[..., 1] * f[..., 0]


@pytest.mark.parametrize("moving", [False, True])
def test_a_clamp_carries_the_weight_of_a_bar_and_its_torque(moving):
    """A bar on a wall, at rest: the force on the clamp is the weight, its torque the moment of the weight."""
    motion = PrescribedMotion([0.0, 10.0], [[0, 0], [2.0, 1.0]]) if moving else None
    bar = SoftBody(
        "bar", Box((0.0, 0.0), (0.4, 0.2)), Material(2e5, 0.25, 1000.0, damping=3e-2),
        regions={"end": Box((-1.0, -1.0), (0.1, 1.0))}, velocity=(0.2, 0.1) if moving else (0.0, 0.0),
    )  # fmt: skip
    scene = Scene([bar], constraints=[Constraint("end", motion=motion)], gravity=(0.0, -10.0))
    sim = Simulation(scene, MPM(0.04), 5e-3, substeps=None)
    weight = 10.0 * 1000.0 * 0.4 * 0.2

    def observe(state):
        read = sim.sense(state)
        about = read.constraint_torque[:, 0] + weight * state.position[..., 0].mean(1)
        return torch.cat([read.constraint_force[:, 0], about[:, None]], 1)

    state = sim.rollout(None, 200).final
    felt = to_numpy(sim.rollout(None, 40, state, observe=observe).observation[0]).mean(0)  # while it passes a cell
    assert felt[:2] == pytest.approx([0.0, -weight], abs=5e-3 * weight)
    assert felt[2] == pytest.approx(0.0, abs=5e-3 * weight * 0.2)


@pytest.mark.verification
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_gradients_of_readings(dim, rng):
    """Of every reading to everything, against central differences, in a scene with all that MPM has."""
    sim = Simulation(held(busy(dim)), MPM(1 / 8), 6e-3, 3, worlds=2)
    inputs = stirred(sim, rng, 1)
    inputs["control"] = inputs["control"][:, 0]
    fields = fields_of(sim.state())

    def sensed(given: dict) -> dict[str, torch.Tensor]:
        state = sim.state(**{n: given[n] for n in fields})
        return vars(sim.sense(state, given["control"], **{n: given[n] for n in sim.parameters()}))

    leaves = {n: t.clone().requires_grad_() for n, t in inputs.items()}
    first = sensed(leaves)
    later = ("contact_torque", "constraint_force", "constraint_torque")
    draw = {n: rng if n not in later else np.random.default_rng(6 + later.index(n)) for n in first}
    weights = {n: torch.as_tensor(draw[n].normal(size=t.shape)) / t.detach().abs().max() for n, t in first.items()}
    directions = {n: torch.as_tensor(rng.uniform(-1, 1, t.shape)) * t.abs().clamp(min=1e-3) for n, t in inputs.items()}
    h, met = 1e-6, set()
    gradients = {
        n: torch.autograd.grad((w * first[n]).sum(), list(leaves.values()), retain_graph=True)
        for n, w in weights.items()
    }
    for k, name in enumerate(inputs):
        ahead, behind = (sensed(inputs | {name: inputs[name] + s * h * directions[name]}) for s in (1, -1))
        for reading, w in weights.items():
            g = gradients[reading][k]
            slope = float((g * directions[name]).sum())
            difference = float((w * (ahead[reading] - behind[reading])).sum()) / (2 * h)
            size = float((w * first[reading].detach()).abs().sum())
            assert abs(slope - difference) < 1e-6 * abs(slope) + 1e-15 * size / h, f"{reading} by {name}"
            if abs(slope) > 1e-4 * size:
                met.add((reading, name))
    met_by = {reading: {n for r, n in met if r == reading} for reading in weights}
    print(met_by)
    assert {"density", "volume", "velocity", "velocity_gradient"} <= met_by["kinetic_energy"]
    assert {"youngs_modulus", "poissons_ratio", "volume", "deformation"} <= met_by["elastic_energy"]
    assert {"density", "volume", "position", "gravity"} <= met_by["potential_energy"]
    assert {"density", "velocity", "position", "velocity_gradient"} <= met_by["angular_momentum"]
    assert met_by["strain"] == {"deformation"}
    assert {"youngs_modulus", "poissons_ratio", "damping", "velocity_gradient", "control"} <= met_by["stress"]
    everything = {*inputs} - {"load"}  # which is far from the obstacles
    assert everything <= met_by["contact_force"], everything - met_by["contact_force"]
    assert {"position", "velocity", "density", "friction", "gravity"} <= met_by["contact_torque"]


@pytest.mark.parametrize(("dtype", "components"), [(real, ()), (vector(3), (3,)), (terms_type(2), (5,))])
def test_sums_are_those_of_numpy(dtype, components, as_gpu, rng):
    """By one thread, and by many lanes; the gradient of a sum is the same for all that it adds up."""
    shape = (2, 1000, *components)
    values = wp.array(rng.uniform(size=shape), dtype=dtype, requires_grad=True)
    total = wp.zeros(2, dtype=dtype, requires_grad=True)
    for choose in (lambda: None, as_gpu):
        choose()
        add_up(values, total)
        np.testing.assert_allclose(total.numpy(), values.numpy().astype(np.float64).sum(1), rtol=1e-7)
    total.grad.assign(rng.uniform(size=total.numpy().shape))
    adj_add_up(values, total)
    np.testing.assert_array_equal(values.grad.numpy(), np.repeat(total.grad.numpy()[:, None], 1000, axis=1))
