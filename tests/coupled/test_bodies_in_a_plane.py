"""Matter and rigid bodies in 2D scenes, against conservation laws, closed forms and 3D slabs between slip walls."""

import numpy as np
import pytest
import torch
from flat_scenes import disc_and_jelly
from hybrid_scenes import MATTER

import warpbots as wb
from warpbots.contact import signed_distance
from warpbots.numerics import precision
from warpbots.solvers.articulated.inertia import body_inertia

S = wb.shapes
ROUNDING = 1e-12 if precision == "float64" else 1e-5
STILL = torch.zeros(1, 0)
EACH = pytest.mark.parametrize("matter", MATTER)
G = 9.81


@pytest.mark.verification
@EACH
@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
@pytest.mark.parametrize("density", [2.0, 2e3, 2e6])
def test_momentum_in_a_plane_is_conserved_and_energy_does_not_grow(density, integrator, matter):
    """In every step of a collision off centre with friction, at ratios of masses from 1e-3 to 1e3."""
    sim = wb.Simulation(disc_and_jelly(density), wb.Coupled(MATTER[matter](0.02), wb.Articulated(integrator)), 5e-3)
    start = sim.state()
    velocity, qd = start.velocity.clone(), start.qd.clone()
    velocity[..., 1], qd[0, :2] = 0.3, torch.tensor([0.2, -0.3]) * min(1.0, 1e3 / density)
    state = sim.state(velocity=velocity, qd=qd)
    first = sim.sense(state, STILL)
    assert first.angular_momentum.shape == (1,)
    energy = first.kinetic_energy + first.elastic_energy
    size = torch.sqrt(2.0 * energy * (10.0 + sim.parameter("mass").sum()))
    for _ in range(12):
        state = sim.step(state, STILL)
        read = sim.sense(state, STILL)
        assert (read.momentum - first.momentum).abs().max() <= ROUNDING * size
        assert (read.angular_momentum - first.angular_momentum).abs().max() <= ROUNDING * size * 0.1
        assert read.kinetic_energy + read.elastic_energy <= energy * (1.0 + ROUNDING)
    assert read.kinetic_energy + read.elastic_energy < 0.999 * energy  # they met
    assert state.qd[0, 2].abs() > 1e-3  # and friction has turned the disc


def block_on_slab(solver, friction: float = 0.3) -> wb.Simulation:
    """A square of 6 cm on a slab that is stuck to the floor."""
    slab = wb.SoftBody("slab", S.Box((0, 0), (0.24, 0.04)), wb.Material(3e5, 0.25, 1000.0, damping=2e-3),
                       friction=friction)  # fmt: skip
    block = wb.RigidBody("block", S.Box((-0.03, -0.03), (0.03, 0.03)), 1000.0, position=(0.06, 0.0701),
                         friction=friction)  # fmt: skip
    scene = wb.Scene([slab, block], obstacles=[wb.floor(0.0, 2, "sticky")], domain=((-0.02, 0), (0.26, 0.12)))
    return wb.Simulation(scene, wb.Coupled(solver), 5e-3)


@pytest.mark.parametrize(("solver", "off", "least"), [
    (wb.MPM(0.02), 0.02, 0.95), (wb.MassSpring(0.02), 1e-3, 0.85), (wb.MassSpring(0.01), 1e-3, 0.93),
])  # fmt: skip
def test_a_block_rests_with_its_weight_and_is_stopped_by_coulombs_law(solver, off, least):
    """A metre of depth weighs density times area; v^2 / (2 mu g) is 42.5 mm, less bumps of masses."""
    sim = block_on_slab(solver)
    state, forces = sim.state(), []
    for _ in range(40):
        state = sim.step(state, STILL)
        read = sim.sense(state, STILL)
        forces.append((read.matter_force[0, 0, 1].item(), -read.contact_force[0, 0, 1].item()))
    on_block, on_floor = np.mean(forces[20:], axis=0)
    weight = 1000.0 * 0.06**2 * G
    assert on_block == pytest.approx(weight, rel=off)
    if isinstance(solver, wb.MPM):
        assert on_floor == pytest.approx(weight + 1000.0 * 0.24 * 0.04 * G, rel=0.01)
    assert read.center[0, 0, 1].item() - 0.03 == pytest.approx(0.04, abs=1e-3)
    assert read.matter_torque[0, 0, 2].item() == pytest.approx(read.center[0, 0, 0].item() * weight, rel=2.0 * off)
    qd = state.qd.clone()
    qd[0, 0] = 0.5
    end = sim.rollout(None, 45, state=sim.state(**{**vars(state), "qd": qd})).final
    way = (end.q - state.q)[0, 0].item() / (0.5**2 / (2 * 0.3 * G))
    assert least < way < 1.02


def rise_of_a_float(dx: float, seed: int = 0) -> float:
    """Mean rise of a square of half the density of water above its place half immersed [its edge]."""
    wide, half, level = 0.24, 0.03, 0.1
    low, high = wide / 2 - half, wide / 2 + half
    around = [S.Box((0, 0), (wide, level - half)), S.Box((0, level - half), (low, level)),
              S.Box((high, level - half), (wide, level))]  # fmt: skip
    water = wb.SoftBody("water", S.Union(around), wb.Material(5e4, 0.45, 1000.0, "weakly_compressible"), friction=0.0)
    square = wb.RigidBody("square", S.Box((-half, -half), (half, half)), 500.0, position=(wide / 2, level),
                          friction=0.0)  # fmt: skip
    pole = wb.Joint("pole", "prismatic", None, "square", axis=(0, 1), damping=20.0)
    scene = wb.Scene([water, square], obstacles=wb.walls((0, 0), (wide, 0.2)), joints=[pole],
                     domain=((0, 0), (wide, 0.2)))  # fmt: skip
    sim = wb.Simulation(scene, wb.Coupled(wb.MPM(dx)), 5e-3)
    state, places = sim.state(), []
    stirred = 0.2 * torch.randn(state.velocity.shape, generator=torch.Generator().manual_seed(seed))
    state = sim.state(**{**vars(state), "velocity": stirred.to(state.velocity)})
    for _ in range(160):
        state = sim.step(state, STILL)
        places.append(state.q.item())
    return float(np.mean(places[80:])) / (2.0 * half)


def test_a_floating_square_is_immersed_by_its_share_of_the_density_of_water():
    """Half of it, after the water was stirred: water that never moved holds up a part."""
    assert rise_of_a_float(0.01) == pytest.approx(0.0, abs=0.04)


def disc_on_jelly(dim: int, depth: float) -> wb.Simulation:
    """A disc that falls on jelly in a plane, or a cylinder on jelly between two slip walls."""

    def lifted(x: float, y: float, across: float) -> tuple:
        return (x, y) if dim == 2 else (x, across, y)

    jelly = wb.SoftBody("jelly", S.Box(lifted(0, 0, 0), lifted(0.16, 0.08, depth)), wb.Material(2e4, 0.3, 1000.0),
                        friction=0.4)  # fmt: skip
    shape = S.Sphere((0, 0), 0.03) if dim == 2 else S.Cylinder((0, -depth, 0), (0, depth, 0), 0.03)
    density = 1000.0 if dim == 2 else 500.0  # the cylinder reaches into both walls
    at = lifted(0.07, 0.112, depth / 2)
    disc = wb.RigidBody("disc", shape, density, position=at, friction=0.4)
    start = (0.3, -1.0, 5.0) if dim == 2 else (0.3, 0.0, -1.0, 0.0, -5.0, 0.0)
    free = wb.Joint("free", {2: "free_2d", 3: "free"}[dim], None, "disc", position=at, start_velocity=start)
    sides = [] if dim == 2 else [wb.Obstacle(S.HalfSpace((0, y, 0), (0, n, 0)), "slip", name=f"side {n}")
                                 for y, n in ((0.0, 1.0), (depth, -1.0))]  # fmt: skip
    scene = wb.Scene([jelly, disc], obstacles=[wb.floor(0.0, dim, "sticky"), *sides], joints=[free],
                     domain=(lifted(-0.04, 0, 0), lifted(0.2, 0.2, depth)))  # fmt: skip
    return wb.Simulation(scene, wb.Coupled(wb.MPM(0.01)), 2e-3, 4)


def test_a_scene_in_a_plane_moves_like_a_slab_between_slip_walls():
    """A disc that spins hits jelly off its middle and rebounds; force per depth and motion, at equal steps."""
    depth, runs = 0.03, []
    for dim in (2, 3):
        sim, found = disc_on_jelly(dim, depth), []
        state = sim.state()
        for _ in range(40):
            state = sim.step(state, STILL)
            force = sim.sense(state, STILL).matter_force[0, 0]
            motion = state.qd[0, [0, 1, 2]] if dim == 2 else state.qd[0, [0, 2, 4]] * torch.tensor([1, 1, -1])
            found.append([*motion.tolist(), force[dim - 1].item() / (1.0 if dim == 2 else depth)])
        runs.append(np.array(found))
    flat, slab = runs
    assert flat[:, 1].max() > 0.3  # it has rebounded
    assert flat[:, 2].min() < 2.0  # and was turned by friction
    size = np.abs(flat).max(axis=0)
    assert np.abs(flat - slab).max(axis=0)[:3] / size[:3] == pytest.approx(0.0, abs=0.02)
    assert np.abs(flat[:, 3].mean() - slab[:, 3].mean()) < 0.01 * slab[:, 3].mean()


def test_rigid_bodies_in_a_plane_touch_each_other_under_a_law():
    """A disc on a square on the floor, beside matter: each stands on the one below with its weight."""
    jelly = wb.SoftBody("jelly", S.Box((0.3, 0), (0.34, 0.04)), wb.Material(2e4))
    square = wb.RigidBody("square", S.Box((-0.05, -0.05), (0.05, 0.05)), 500.0, position=(0.1, 0.05), points=12)
    disc = wb.RigidBody("disc", S.Sphere((0, 0), 0.03), 1000.0, position=(0.1, 0.13), points=1)
    laws = [
        wb.Contact(a, b, 1e7, 1e9, friction=0.5, viscosity=1e5) for a, b in (("square", "floor"), ("disc", "square"))
    ]
    scene = wb.Scene(
        [jelly, square, disc], obstacles=[wb.floor(dim=2)], contacts=laws, domain=((-0.1, -0.1), (0.5, 0.3))
    )
    sim = wb.Simulation(scene, wb.Coupled(wb.MPM(0.01)), 5e-3)
    end = sim.rollout(None, 60).final
    read = sim.sense(end, STILL)
    weights = sim.parameter("body_mass" if "body_mass" in sim.parameters() else "mass")
    assert weights[0].tolist() == pytest.approx([500.0 * 0.01, 1000.0 * np.pi * 9e-4], rel=1e-6)
    assert read.obstacle_force[0, 0, 1].item() == pytest.approx(-weights.sum().item() * G, rel=1e-3)
    assert read.center[0, :, 1].tolist() == pytest.approx([0.05, 0.13], abs=1e-3)
    assert end.qd.abs().max() < 1e-3
    assert not read.position[0, :, 2].any()


@pytest.mark.parametrize("shape", [
    S.Box((0.01, -0.02), (0.05, 0.03)), S.Sphere((0.01, 0.02), 0.03), S.Capsule((-0.02, 0.0), (0.03, 0.02), 0.01),
    S.Cylinder((-0.02, 0.0), (0.03, 0.02), 0.01), S.Posed(S.Box((0, 0), (0.04, 0.02)), (0.01, 0), ((0, -1), (1, 0))),
    S.Union((S.Box((0, 0), (0.04, 0.02)), S.Sphere((0.06, 0), 0.015))),
])  # fmt: skip
def test_the_inertia_of_a_slice_is_the_integral_over_its_area(shape):
    lower, upper = shape.bounds
    axes = [np.linspace(a, b, 801)[:-1] + (b - a) / 1600 for a, b in zip(lower, upper, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    x = x[signed_distance(shape, x) < 0.0]
    area = len(x) * float(np.prod((upper - lower) / 800))
    found, center = body_inertia(wb.RigidBody("slice", shape, 300.0)), x.mean(axis=0)
    assert found.mass == pytest.approx(300.0 * area, rel=2e-3)
    assert found.center == pytest.approx((*center, 0.0), abs=5e-5)
    assert found.moments[2, 2] == pytest.approx(300.0 * area * ((x - center) ** 2).sum(axis=1).mean(), rel=4e-3)
