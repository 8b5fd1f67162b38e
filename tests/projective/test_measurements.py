"""What is measured of soft bodies and bones: energies, momenta, strain, stress, and the air in cavities."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import lame
from skeletons import arm, simulated
from soft_bodies import (
    beam,
    beating,
    breathing,
    cloth,
    damped,
    driven,
    forces_at,
    mixed,
    simulation,
    stirred,
    strung,
    truss,
)

from warpbots.scene import Attachment, Box, Constraint, Material, Muscle, Pressure, Scene, Sheet, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

pytestmark = pytest.mark.verification


def attached() -> Scene:
    """Two cubes that hang together, the first of which is held."""
    material, corners = Material(1e5, 0.3, 1000.0), ((0.08, 0.01, 0.01), (0.08, 0.07, 0.03), (0.08, 0.03, 0.07))
    one = SoftBody("one", Box((0, 0, 0), (0.08, 0.08, 0.08)), material, {"root": Box((-1, -1, -1), (1e-6, 1, 1))})
    two = SoftBody("two", Box((0.08, 0, 0), (0.16, 0.08, 0.08)), material)
    return Scene(
        (one, two), constraints=(Constraint("root"),), attachments=(Attachment("seam", "one", "two", corners),)
    )


SCENES = {
    "beam": beam,
    "driven": driven,
    "strung": strung,
    "cloth": cloth,
    "truss": truss,
    "mixed": mixed,
    "attached": attached,
    "breathing": breathing,
}


@pytest.mark.parametrize("name", SCENES)
def test_forces_are_the_slope_of_the_energy(name, rng):
    """-dE/dx of elastic energy and gravity are the forces on free nodes, for elements of every kind; W = -p dV for air.

    Active stress has no energy, so that muscles are left out.
    """
    scene = SCENES[name]()
    elastic = [a for a in scene.actuators if not isinstance(a, Muscle | Pressure)]
    sim, u = simulation(dataclasses.replace(scene, actuators=elastic, loads=())), 0.3
    free = ~torch.as_tensor(sim.model.topology.fixed)
    x = sim.state().position + 2e-3 * torch.as_tensor(rng.uniform(-1, 1, sim.state().position.shape)) * free[:, None]
    x = x.requires_grad_()
    r = sim.sense(sim.state(position=x), torch.full((sim.channels,), u))
    (slope,) = torch.autograd.grad((r.elastic_energy + r.potential_energy).sum(), x, retain_graph=True)
    if name == "breathing":
        slope = slope - torch.autograd.grad((r.pressure.detach() * r.volume).sum(), x)[0]
    force = forces_at(sim, x.detach()[0].numpy(), u)
    scale = np.abs(force).max()
    np.testing.assert_allclose(force[free], -slope[0][free].numpy(), atol=1e-8 * scale)


CASES = {**SCENES, "beating": lambda: damped(beating()), "arm": None}
STEPS = (1e-2, 1e-3, 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name, rng):
    """Relative 1e-6 of the slope, or of a thousandth of the steepest one, along a random direction of every input."""
    sim = simulated(arm("ball"), cell=0.02) if name == "arm" else simulation(CASES[name]())
    if name == "arm":
        inputs = {n: sim.parameter(n) for n in sim.parameters()} | vars(sim.state()) | {"control": torch.zeros(1, 1)}
        del inputs["lost"]  # a mark, not a number
        inputs = {n: v * (1.0 + 0.01 * torch.as_tensor(rng.uniform(-1, 1, v.shape))) for n, v in inputs.items()}
        inputs["inertia"] = 1e-4 * torch.diag(torch.tensor([1.0, 0.9, 0.8])).expand_as(
            inputs["inertia"]
        )  # far from flat
    else:
        inputs = stirred(sim, rng, 1)
        inputs["control"], inputs["time"] = inputs["control"][:, 0], sim.state().time + 0.03
    state, weights = vars(sim.state()).keys() & inputs.keys(), {}

    def loss(values: dict) -> torch.Tensor:
        replaced = {n: v for n, v in values.items() if n in sim.parameters()}
        r = sim.sense(sim.state(**{n: values[n] for n in state}), values["control"], **replaced)
        total = 0.0
        for field, found in vars(r).items():
            if field not in weights:
                scale = float(found.detach().abs().mean()) if found.numel() else 1.0
                weights[field] = torch.as_tensor(rng.normal(size=found.shape)) / (scale or 1.0)
            total = total + (weights[field] * found).sum()
        return total

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    again = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(again).backward()
    for what, value in inputs.items():
        if not value.numel():
            continue
        direction, scale = torch.as_tensor(rng.normal(size=value.shape)), float(value.abs().mean()) or 1.0
        if name == "arm" and what in sim.parameters():  # some are 0, and must not be negative
            direction, scale = direction * value.abs(), 1.0
        slopes = []
        for step in STEPS:
            with torch.no_grad():
                there, back, far, far_back = (
                    float(loss(inputs | {what: value + s * step * scale * direction})) for s in (1.0, -1.0, 2.0, -2.0)
                )
            slopes.append((8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        assert torch.equal(leaves[what].grad, again[what].grad), what
        slope = float((leaves[what].grad * direction).sum())
        steepest = float(leaves[what].grad.norm() * direction.norm())
        error = min(abs(slope - s) for s in slopes)
        assert error <= 1e-6 * max(abs(slope), 1e-3 * steepest, 1e-9), (what, slope, slopes)


def test_strain_and_stress_of_a_stretched_block():
    """x = (a X, b Y, c Z): E = (F^2 - 1) / 2, sigma = (mu (F^2 - 1) + lambda ln J) / J for neo-Hookean matter."""
    F = np.diag([1.2, 0.9, 1.05])
    sim = simulation(dataclasses.replace(beam("neo_hookean"), actuators=(), constraints=(), loads=()))
    r = sim.sense(sim.state(position=sim.state().position @ torch.as_tensor(F)))
    mu, lam = lame(1e5, 0.3)
    J = np.linalg.det(F)
    stress = (mu * (F @ F - np.eye(3)) + lam * np.log(J) * np.eye(3)) / J
    energy = 0.5 * mu * (np.trace(F @ F) - 3.0) - mu * np.log(J) + 0.5 * lam * np.log(J) ** 2
    assert r.strain.shape == (1, len(sim.model.matter.tets), 3, 3)
    np.testing.assert_allclose(r.strain[0], np.broadcast_to(0.5 * (F @ F - np.eye(3)), r.strain[0].shape), atol=1e-12)
    np.testing.assert_allclose(r.stress[0], np.broadcast_to(stress, r.stress[0].shape), rtol=1e-10, atol=1e-5)
    np.testing.assert_allclose(r.elastic_energy, energy * 0.16 * 0.08 * 0.08, rtol=1e-12)


def test_energy_and_momenta_of_a_body_that_turns_and_flies():
    """v = V + w x (x - c): p = m V, L = c x p + I w, T = m/2 V^2 + w . I w / 2, with the inertia of the nodes."""
    sim = simulation(dataclasses.replace(beam(), actuators=(), constraints=(), loads=()))
    x, matter = sim.state().position[0].numpy(), sim.model.matter
    m, V, w = matter.volume * matter.density, np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -2.0])
    c = m @ x / m.sum()
    arm_of = x - c
    r = sim.sense(sim.state(velocity=torch.as_tensor(V + np.cross(w, arm_of))[None]))
    inertia = np.einsum(
        "n,nij->ij", m, np.eye(3) * (arm_of**2).sum(1)[:, None, None] - arm_of[:, :, None] * arm_of[:, None]
    )
    np.testing.assert_allclose(r.momentum[0], m.sum() * V, rtol=1e-12)
    np.testing.assert_allclose(r.angular_momentum[0], np.cross(c, m.sum() * V) + inertia @ w, rtol=1e-12)
    np.testing.assert_allclose(r.kinetic_energy, 0.5 * (m.sum() * V @ V + w @ inertia @ w), rtol=1e-12)
    np.testing.assert_allclose(r.potential_energy, 9.81 * m.sum() * c[2], rtol=1e-12)


def test_momenta_of_soft_bodies_and_bones_are_slopes_of_their_kinetic_energy(rng):
    """dT/dV = p for a common velocity V, and dT/dw = L for a common rotation w about the origin.

    The root is a free joint at the centre of mass of its body, whose axes are those of the world at rest.
    """
    sim = simulated(arm("free"), cell=0.02)
    start = sim.state(qd=torch.as_tensor(rng.normal(size=sim.state().qd.shape)))
    v = torch.as_tensor(rng.normal(size=start.velocity.shape))
    V, w = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    x, root = start.position[0], sim.sense(start).center[0, 0]
    at_root = torch.cat([V + torch.linalg.cross(w, root), w, torch.zeros(start.qd.shape[1] - 6)])
    turning = V + torch.linalg.cross(w.expand_as(x), x)
    r = sim.sense(sim.state(velocity=v + turning, qd=start.qd + at_root))
    p, L = torch.autograd.grad(r.kinetic_energy.sum(), (V, w))
    np.testing.assert_allclose(r.momentum[0].detach(), p, rtol=1e-10)
    np.testing.assert_allclose(r.angular_momentum[0].detach(), L, rtol=1e-10)
    assert (r.bone_kinetic_energy.sum() > 0.0) and (r.bone_kinetic_energy.sum() < r.kinetic_energy)


@pytest.mark.verification(float32=True)
def test_a_sheet_stores_the_energy_of_a_small_strain():
    """t A (mu e : e + lambda/2 (tr e)^2) of plane stress; rounding of terms of order one was as large."""
    E, nu, thickness = 1e5, 0.3, 1e-3
    sheet = SoftBody("sheet", Sheet.rectangle((0.0, 0.0), (0.4, 0.3), thickness, (4, 3)), Material(E, nu))
    sim = Simulation(Scene((sheet,), gravity=(0.0,) * 3), ProjectiveDynamics(), 1e-3, 1)
    x = sim.state().position
    mu, lam = E / (2.0 + 2.0 * nu), E * nu / (1.0 - nu**2)
    for size in (0.6, 1.0, 1.7):
        strain = size * torch.finfo(x.dtype).eps ** 0.5 * np.array([1.0, -0.5])
        energy = 0.4 * 0.3 * thickness * (mu * (strain**2).sum() + lam / 2.0 * strain.sum() ** 2)
        stretch = torch.as_tensor([*(1.0 + strain), 1.0]).to(x)
        found = sim.sense(sim.state(position=x * stretch)).elastic_energy.item()
        assert found == pytest.approx(energy, rel=0.02)
