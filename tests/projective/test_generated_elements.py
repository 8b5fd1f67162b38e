"""Kernels that are made of energies: forces and second derivatives against differences, and the energy of a stranger."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from soft_bodies import CELL, DT, beam, damped, driven, mixed, simulation

from warpbots.numerics import NODE, launch, real, real_numpy, vector
from warpbots.scene import Attachment, Box, Constraint, HalfSpace, Load, Material, Scene, SoftBody, Truss
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import topology
from warpbots.solvers.projective.elements.bars import BARS, FAMILY
from warpbots.solvers.projective.elements.element import Kind, Point
from warpbots.solvers.projective.elements.generator.energy import Energy
from warpbots.solvers.projective.elements.generator.kinds import all_of, element_kind
from warpbots.solvers.projective.elements.kinds import kinds_of
from warpbots.solvers.projective.forces import evaluate_rest

pytestmark = pytest.mark.verification


def tied() -> Scene:
    """Two bars that are tied to each other."""
    scene = beam()
    weld = Attachment("weld", "beam", "tip", [(0.16, y, z) for y in (0.02, 0.06) for z in (0.02, 0.06)])
    tip = SoftBody("tip", Box((0.16, 0, 0), (0.32, 0.08, 0.08)), scene.bodies[0].material)
    return dataclasses.replace(scene, bodies=(*scene.bodies, tip), attachments=(weld,))


CASES = {
    "triangles": mixed, "bars": mixed, "fibres": driven, "pneumatic": driven, "attachments": tied,
    "damped_tets": lambda: damped(beam("neo_hookean")), "damped_triangles": lambda: damped(mixed()),
    "damped_bars": lambda: damped(mixed()),
}  # fmt: skip


@dataclasses.dataclass
class Corners:
    """Elements of one kind in a step of a scene that begins away from rest, and what their kernels say at its end."""

    name: str
    sim: Simulation
    x: np.ndarray

    def __post_init__(self):
        model = self.sim.model
        self.kind, self.elements = next(pair for pair in model.elements if pair[0].name == self.name)
        self.u = wp.zeros(model.topology.sizes.stride, dtype=NODE)
        control = wp.full((1, model.channels), 0.6, dtype=real)
        x = wp.array(self.x.astype(real_numpy), dtype=vector(3))
        time = self.sim.solver.state(model).time
        self.point = Point(model.workspace.everywhere, control, x, self.u, real(DT), time)
        evaluate_rest(model, self.point)
        place, node = self.elements.place, self.elements.node.numpy()
        self.node, self.own = node.reshape(-1), slice(place.corner, place.corner + node.size)
        self.pairs = slice(3 * place.pair, 3 * (place.pair + node.size * node.shape[1]))

    def launched(self, launches, out: wp.array, u: np.ndarray) -> np.ndarray:
        """What launches write at displacements u."""
        wide = np.zeros((self.u.size, 4), dtype=real_numpy)
        wide[: len(u), :3] = u
        self.u.assign(wide)
        out.zero_()
        for kernel, dim, inputs in launches(self.elements, self.sim.model, self.point):
            launch(kernel, dim, inputs, [], self.sim.model.device)
        return out.numpy().astype(float)

    def energy(self, u: np.ndarray) -> float:
        """Energy of all elements [J]."""
        return self.launched(self.kind.energy, self.sim.model.workspace.energy, u)[self.own].sum()

    def forces(self, u: np.ndarray) -> np.ndarray:
        """Forces at all corners [N], shape (corners, 3)."""
        return self.launched(self.kind.forces, self.sim.model.workspace.force, u)[self.own]

    def stiffness(self, u: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Product of second derivatives with displacements of corners [N], shape (corners, 3)."""
        k = self.elements.node.numpy().shape[1]
        block = self.launched(self.kind.stiffness, self.sim.model.workspace.block, u)[self.pairs, :3]
        return np.einsum("eklba,elb->eka", block.reshape(-1, k, k, 3, 3), d.reshape(-1, k, 3)).reshape(-1, 3)


@pytest.mark.parametrize("name", CASES)
def test_forces_and_stiffness_are_derivatives(name, rng):
    """f = -dE/dx and K = -df/dx, by central differences, at large displacements; dampers have no energy to measure."""
    sim = simulation(CASES[name]())
    rest = sim.model.matter.position
    corners = Corners(name, sim, rest + 0.05 * CELL * rng.normal(size=rest.shape))
    u, d = (s * CELL * rng.normal(size=rest.shape) for s in (0.1, 1e-5))
    step = d[corners.node]
    forces = corners.forces(u)
    if corners.kind.energy is not None:
        slope = (corners.energy(u + d) - corners.energy(u - d)) / 2.0
        assert -(forces * step).sum() == pytest.approx(slope, rel=1e-7)
    pushed = (corners.forces(u + d) - corners.forces(u - d)) / 2.0
    assert np.abs(forces).max() > 0.0
    np.testing.assert_allclose(corners.stiffness(u, step), -pushed, atol=1e-7 * np.abs(pushed).max())


_line = wp.types.matrix((3, 1), real)


@wp.func
def quartic_density(F: _line, k: real, s: real):
    """k/8 (|F|^2 - s^2)^2."""
    strain = wp.ddot(F, F) - s * s
    return real(0.125) * k * strain * strain


@wp.func
def quartic_stress(F: _line, k: real, s: real):
    """k/2 (|F|^2 - s^2) F."""
    return real(0.5) * k * (wp.ddot(F, F) - s * s) * F


@wp.func
def quartic_modulus(s: real):
    """Half of the second derivative k (3 |F|^2 - s^2) / 2 at a stretch of 1.5."""
    return real(1.5)


QUARTIC = Energy("quartic", quartic_density, quartic_stress, quartic_modulus)


def with_quartic_bars(solid) -> tuple[Kind, ...]:
    """All kinds of elements, but bars of a St. Venant-Kirchhoff material."""
    blocks = lambda mesh: 1.5 * BARS.blocks(mesh)
    bars = element_kind(FAMILY, quartic_modulus, BARS.rest, all_of(QUARTIC), blocks=blocks)
    return tuple(bars if kind is BARS else kind for kind in kinds_of(solid))


def test_an_energy_of_ones_own_is_its_density_its_stress_and_its_modulus(monkeypatch):
    """A bar of it carries E A (s^2 - 1) s / 2 at the stretch s, with the derivative of that to E."""
    monkeypatch.setattr(topology, "kinds_of", with_quartic_bars)
    E, radius, length, stretch = 1e6, 2e-3, 0.5, 1.3
    area = np.pi * radius**2
    mast = Truss(np.array([[0.0, 0, 0], [length, 0, 0]]), np.array([[0, 1]]), radius)
    regions = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "tip": HalfSpace((length - 1e-6, 0, 0), (-1, 0, 0))}
    body = SoftBody("bar", mast, Material(E, 0.3, 1000.0), regions=regions)
    load = Load("tip", (E * area * (stretch**2 - 1.0) * stretch / 2.0, 0.0, 0.0))
    scene = Scene((body,), constraints=(Constraint("root"),), loads=(load,), gravity=(0.0,) * 3)
    sim = Simulation(scene, ProjectiveDynamics(CELL, tolerance=1e-12), 100.0)
    modulus = sim.parameter("youngs_modulus").clone().requires_grad_()
    tip = sim.rollout(None, 4, youngs_modulus=modulus).final.position[0, 1, 0]
    assert float(tip.detach()) == pytest.approx(stretch * length, rel=1e-9)
    (slope,) = torch.autograd.grad(tip, modulus)
    of_stretch = (3.0 * stretch**2 - 1.0) / (stretch * (stretch**2 - 1.0))  # d ln f / ds, and f = E g(s) is given
    assert float(slope) == pytest.approx(-length / (E * of_stretch), rel=1e-6)
