"""Sheets: plane stress, bending, and their contacts."""

import numpy as np
import pytest
import torch
from soft_bodies import cloth, contact_forces, forces_at, waved

from warpbots.numerics import precision
from warpbots.scene import (
    Box,
    Constraint,
    HalfSpace,
    Material,
    Muscle,
    Obstacle,
    Posed,
    Scene,
    SceneError,
    Sheet,
    SoftBody,
    Sphere,
    Union,
)
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

CELL = 0.02
ROUNDING = {"float32": 2e-4, "float64": 1e-9}[precision]


def still(sheet: Sheet, material: Material, regions: dict | None = None, dt: float = 1.0, **options) -> Simulation:
    """A sheet without weight, in steps so long that it comes to rest in a few."""
    body = SoftBody("sheet", sheet, material, regions=regions)
    scene = Scene((body,), constraints=tuple(Constraint(r) for r in regions or {}), gravity=(0.0, 0.0, 0.0))
    return Simulation(scene, ProjectiveDynamics(CELL, **options), dt)


def equilateral(columns: int, rows: int, a: float, thickness: float, bending: float) -> Sheet:
    """Equilateral triangles with the edge a; nodes in columns across x, every other of which is lifted by a / 2."""
    i, j = np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")
    vertices = a * np.stack([np.sqrt(0.75) * i, j + 0.5 * (i % 2), 0.0 * i], axis=-1).reshape(-1, 3)
    n = np.arange(columns * rows).reshape(columns, rows)
    p, q, r, s = n[:-1, :-1], n[1:, :-1], n[1:, 1:], n[:-1, 1:]
    low = (np.arange(columns - 1) % 2 == 0)[:, None, None]
    first = np.where(low, np.stack([p, q, s], axis=-1), np.stack([p, q, r], axis=-1))
    second = np.where(low, np.stack([q, r, s], axis=-1), np.stack([p, r, s], axis=-1))
    return Sheet(vertices, np.stack([first, second], axis=2).reshape(-1, 3), thickness, bending)


# in its plane


@pytest.mark.verification
@pytest.mark.parametrize("nu", [-0.3, 0.0, 0.3, 0.49])
def test_a_sheet_that_is_pulled_has_the_modulus_of_plane_stress(nu, rng):
    """Stretch s / E along the pull s and -nu s / E across, to 1e-9 in every triangle of an irregular mesh."""
    E, t, pull = 1e4, 2e-3, 500.0
    sheet = Sheet.rectangle((0.0, 0.0), (0.12, 0.08), t, (6, 4))
    x = sheet.vertices.copy()
    inner = (x[:, 0] > 1e-6) & (x[:, 0] < 0.12 - 1e-6) & (x[:, 1] > 1e-6) & (x[:, 1] < 0.08 - 1e-6)
    x[inner, :2] += 5e-3 * rng.uniform(-1, 1, (inner.sum(), 2))
    sim = still(Sheet(x, sheet.faces, t), Material(E, nu, 1000.0), tolerance=1e-13)
    load = torch.zeros_like(sim.parameter("load"))
    for end, sign in ((x[:, 0] < 1e-6, -1.0), (x[:, 0] > 0.12 - 1e-6, 1.0)):
        corner = (x[:, 1] < 1e-6) | (x[:, 1] > 0.08 - 1e-6)
        load[0, end, 0] = sign * pull * t * 0.02 * torch.as_tensor(np.where(corner, 0.5, 1.0)[end]).to(load)
    state = sim.state()
    for _ in range(6):
        state = sim.step(state, torch.zeros(0), load=load)
    y, middle = state.position[0].numpy(), x.mean(axis=0)
    expected = (x - middle) * (1.0 + pull / E * np.array([1.0, -nu, 0.0]))
    np.testing.assert_allclose(y - y.mean(axis=0), expected - expected.mean(axis=0), rtol=0.0, atol=1e-9 * 0.12)


# bending


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("mesh", ["squares", "diagonal", "triangles"])
def test_a_cylinder_has_the_energy_of_a_plate(mesh):
    """D / (2 r^2) per area, to (a / r)^2: along a grid, where only edges across are folded, and on equilateral triangles.

    With the axis along a diagonal of a grid of squares it is 1.5 times as much: 1 for every diagonal, 1/4 for every
    other edge. The forces of a flat sheet are linear in the positions, so that its energy is -f . x / 2; it has next to
    no stiffness in its plane.
    """
    D, r, a = 2e-3, 0.25, 0.01
    cell = a * a
    along, hinges = np.array([1.0, 0.0, 0.0]), 11 * 10
    sheet = Sheet.rectangle((0, 0), (12 * a, 10 * a), 1e-3, (12, 10), bending=D)
    if mesh == "diagonal":
        along, hinges = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0), 12 * 10 + (11 * 10 + 12 * 9) / 4
    elif mesh == "triangles":
        sheet, cell = equilateral(13, 11, a, 1e-3, D), np.sqrt(0.75) * a * a
    sim = still(sheet, Material(1e-6, 0.0, 1000.0))
    X = sheet.vertices
    s, across = X @ along - 0.05, np.array([-along[1], along[0], 0.0])
    x = (r * np.sin(s / r))[:, None] * along + (X @ across)[:, None] * across
    x[:, 2] = r * (1.0 - np.cos(s / r))
    energy = -0.5 * (forces_at(sim, x) * x).sum()
    assert energy == pytest.approx(D / (2.0 * r**2) * hinges * cell, rel=(a / r) ** 2)


@pytest.mark.verification
@pytest.mark.parametrize(
    ("mesh", "rows", "ratio", "tolerance"),
    [("triangles", 28, 1.0, 0.03), ("triangles", 4, 9 / 8, 0.01), ("squares", 4, 6 / 5, 5e-3)],
)
def test_a_cantilever_sags_as_a_plate(mesh, rows, ratio, tolerance):
    """w = q L^4 / (8 D), for a clamp half way between the two columns that are held.

    Equilateral triangles have the energy of a plate with the Poisson's ratio nu = -1/3 for bending: a wide strip has
    the rigidity D, a narrow one D (1 - nu^2) = 8/9 D. On squares whose diagonals alternate nodes with eight neighbours
    and those with four move apart, which takes a sixth of the energy away. Left over is 1 / (2 n^2) of n = 20 columns,
    and what ends and edges do: a strip is neither wide nor narrow.
    """
    D, t, rho, a, n = 1e-3, 1e-3, 1000.0, 0.01, 20
    sheet = Sheet.rectangle((0.0, 0.0), ((n + 1) * a, rows * a), t, (n + 1, rows), bending=D)
    if mesh == "triangles":
        sheet, a = equilateral(n + 2, rows + 1, a, t, D), np.sqrt(0.75) * a
    sim = still(sheet, Material(1e3, 0.3, rho), {"clamp": HalfSpace((1.5 * a, 0, 0), (1, 0, 0))}, tolerance=1e-10)
    g, state = 0.01, sim.state()
    for _ in range(12):
        state = sim.step(state, torch.zeros(0), gravity=torch.tensor([0.0, 0.0, -g]))
    tip = sheet.vertices[:, 0] > (n + 0.9) * a
    w = -state.position[0, tip, 2].numpy().mean()
    L = (n + 0.5) * a
    expected = ratio * rho * t * g * L**4 / (8.0 * D)
    assert expected < 0.02 * L  # small enough for the theory of small deflections
    assert w == pytest.approx(expected, rel=tolerance)


def test_the_rigidity_is_that_of_a_plate_unless_it_is_given():
    sheet = Sheet.rectangle((0, 0), (0.1, 0.1), 2e-3, (2, 2))
    sim = still(sheet, Material(1e6, 0.3, 1000.0))
    D = sim.parameter("bending")
    assert D.shape == (1, 8)
    assert D.tolist()[0] == pytest.approx([1e6 * 8e-9 / (12.0 * 0.91)] * 8, rel=1e-6)
    given = Sheet.rectangle((0, 0), (0.1, 0.1), 2e-3, (2, 2), bending=0.0)
    assert not still(given, Material(1e6)).parameter("bending").any()


@pytest.mark.verification
def test_rest_is_a_fold_to_one_side():
    """A flat sheet whose shape at rest becomes a cylinder rolls up to that side and to no other, without any force."""
    r, sheet = 0.05, Sheet.rectangle((0.0, 0.0), (0.1, 0.02), 1e-3, (10, 2), bending=1e-3)
    sim = still(sheet, Material(1e3, 0.3, 1000.0), {"root": HalfSpace((0.015, 0, 0), (1, 0, 0))}, tolerance=1e-11)
    X = sheet.vertices.copy()
    bent = X.copy()
    roll = np.maximum(np.arange(11) - 0.5, 0.0) * 0.01 / r  # the first cell stays flat
    chord = np.cumsum(0.01 * np.stack([np.cos(roll), np.sin(roll)], axis=1)[1:-1], axis=0)
    chord = np.concatenate([[[0, 0], [0.01, 0]], chord + [0.01, 0]])
    for side in (1.0, -1.0):
        k = np.round(X[:, 0] / 0.01).astype(int)
        bent[:, 0], bent[:, 2] = chord[k, 0], side * chord[k, 1]
        state, rest = sim.state(), torch.as_tensor(bent)
        for _ in range(8):
            state = sim.step(state, torch.zeros(0), rest_position=rest)
        np.testing.assert_allclose(state.position[0].numpy(), bent, rtol=0.0, atol=1e-7)


@pytest.mark.verification
def test_a_flat_sheet_knows_how_it_would_bend():
    """The gradient to the shape at rest of a flat sheet is that of differences, to 1e-6; not zero as that of |v_0|."""
    sheet = Sheet.rectangle((0.0, 0.0), (0.1, 0.02), 1e-3, (5, 1), bending=1e-3)
    sim = still(sheet, Material(1e3), {"root": HalfSpace((0.025, 0, 0), (1, 0, 0))}, 0.02, tolerance=1e-13)

    def tip(rest: torch.Tensor) -> torch.Tensor:
        return sim.step(sim.state(), torch.zeros(0), rest_position=rest).position[0, -1, 2]

    rest = sim.parameter("rest_position").requires_grad_()
    (slope,) = torch.autograd.grad(tip(rest), rest)
    lift = torch.zeros_like(rest)
    lift[0, :, 2] = rest[0, :, 0].detach() ** 2
    with torch.no_grad():
        difference = (tip(rest + 1e-3 * lift) - tip(rest - 1e-3 * lift)) / 2e-3
    assert abs(float(difference)) > 1e-5
    assert float((slope * lift).sum()) == pytest.approx(float(difference), rel=1e-5)


# motions without forces, and those that have no shape


@pytest.mark.verification(float32=True)
def test_rigid_motions_are_free_of_forces():
    """Of a sheet that is folded at rest, and of its scale; against the forces of a stretch by one percent."""
    sim = Simulation(Scene(cloth(held=False).bodies, gravity=(0, 0, 0)), ProjectiveDynamics(CELL), 0.01)
    X = sim.model.matter.position
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    largest = np.abs(forces_at(sim, 1.01 * X)).max()
    assert largest > 1e-3
    for x in (X, X + [0.3, -0.2, 0.1], X @ turn.T):
        assert np.abs(forces_at(sim, x)).max() < 10 * ROUNDING * largest
    mirrored = forces_at(sim, X * [1, 1, -1])
    assert np.abs(mirrored).max() > 1e-3 * largest  # folds to the other side


@pytest.mark.parametrize("crushed", ["line", "point", "fold", "flat"])
def test_crushed_sheets_have_finite_forces_and_gradients(crushed):
    """Triangles that are a line or a point, and hinges that are closed, have no normal but forces."""
    sheet = waved(Sheet.rectangle((0, 0), (0.1, 0.1), 1e-3, (2, 2)), 0.0 if crushed == "flat" else 0.01)
    sim = still(sheet, Material(1e4), dt=0.01, collisions=False)  # it may pass through itself
    x = sheet.vertices.copy()
    if crushed == "line":
        x[:, 1:] = 0.0
    elif crushed == "point":
        x[:] = 0.0
    elif crushed == "fold":
        x[:, 0] = np.abs(x[:, 0] - 0.05)
        x[:, 2] = 0.0
    assert np.isfinite(forces_at(sim, x)).all()
    position = torch.as_tensor(x[None]).to(sim.state().position.dtype).requires_grad_()
    end = sim.step(sim.state(position=position), torch.zeros(0))
    end.position.square().sum().backward()
    assert torch.isfinite(end.position).all()
    assert torch.isfinite(position.grad).all()


# what a scene can hold


def test_mass_thickness_and_regions():
    """The mass of a sheet is rho t A; regions select its nodes and its triangles; a model knows its faces."""
    sheet = Sheet.rectangle((0.0, 0.0), (0.2, 0.1), 2e-3, (8, 4))
    stiff = Material(4e5, 0.3, 3000.0)
    body = SoftBody(
        "s", sheet, Material(1e5, 0.3, 1000.0), {"half": HalfSpace((0.1, 0, 0), (1, 0, 0))}, {"half": stiff}
    )
    sim = Simulation(Scene((body,)), ProjectiveDynamics(CELL), 0.01)
    mesh = sim.model.matter
    assert (mesh.volume * mesh.density).sum() == pytest.approx(2000.0 * 2e-3 * 0.02)
    assert mesh.regions["half"].sum() == 25
    assert mesh.element_regions["half"].sum() == 32
    assert (mesh.youngs_modulus == np.where(mesh.element_regions["half"], 4e5, 1e5)).all()
    np.testing.assert_array_equal(mesh.meshes[0].faces, sheet.faces)
    assert sim.parameter("thickness").shape == (1, 64)
    assert "section" not in sim.parameters()
    assert mesh.edge == pytest.approx((0.025 * (84 + 2**0.5 * 32) + 0.0) / 116, rel=0.03)


def test_sheets_are_sewn_where_they_meet():
    """Two sheets over each other coincide nowhere; one on the top of a box shares its nodes."""
    box = Box((0, 0, 0), (0.2, 0.2, 0.2))
    sheets = [Sheet.rectangle((0, 0), (0.2, 0.2), 1e-3, (2, 2), height=h) for h in (0.2, 0.3)]
    lifted = Posed(sheets[0], (0.0, 0.0, 0.1), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    for shape, nodes in (
        (Union(tuple(sheets)), 18),
        (Union((lifted, sheets[1])), 9),
        (Union((box, sheets[0])), 27),
        (Posed(Union((box, sheets[1])), (1, 0, 0), ((0, -1, 0), (1, 0, 0), (0, 0, 1))), 36),
    ):
        body = SoftBody("b", shape, Material(1e5))
        mesh = ProjectiveDynamics(0.1).build(Scene((body,)), 1, "cpu").matter
        assert len(mesh) == nodes
        assert mesh.meshes[0].faces.max() < nodes


def test_actuators_need_a_solid():
    sheet = Sheet.rectangle((0, 0), (0.2, 0.2), 1e-3, (2, 2))
    body = SoftBody("b", sheet, Material(1e5), {"all": Box((-1, -1, -1), (1, 1, 1))})
    scene = Scene((body,), (Muscle("muscle", "all", (1, 0, 0), 1e3),))
    with pytest.raises(
        SceneError, match="Muscle 'muscle': region 'all' contains the centre of no element of a solid, but of 8"
    ):
        ProjectiveDynamics(0.1).build(scene, 1, "cpu")


# contact


@pytest.mark.verification(float32=True)
def test_cloth_drapes_over_a_ball():
    """It comes to rest with no node inside; the forces of the ball are its weight, to 1 %, and none pulls."""
    radius, mu = 0.1, 0.5
    sheet = Sheet.rectangle((-0.12, -0.12), (0.12, 0.12), 1e-3, (12, 12), height=radius + 2e-3, bending=1e-4)
    ball = Obstacle(Sphere((0.0, 0.0, 0.0), radius), friction=mu)
    body = SoftBody("cloth", sheet, Material(2e4, 0.3, 500.0))
    sim = Simulation(Scene((body,), (), (ball,)), ProjectiveDynamics(CELL), 0.02)
    state = sim.state()
    for _ in range(75):
        state = sim.step(state, torch.zeros(0))
    x, v = state.position[0].cpu().numpy(), state.velocity[0].cpu().numpy()
    weight = 500.0 * 1e-3 * 0.24**2 * 9.81
    force, node = contact_forces(sim), sim.model.topology.candidates
    normal = x[node] / np.linalg.norm(x[node], axis=1, keepdims=True)
    assert np.abs(v).max() < 1e-3
    assert np.linalg.norm(x, axis=1).min() > radius - 1e-5
    assert x[:, 2].min() < 0.05  # its corners hang down
    np.testing.assert_allclose(force.sum(axis=0), [0.0, 0.0, weight], atol=0.01 * weight)
    press = (force * normal).sum(axis=1)
    assert press.min() > -1e-6 * weight
    assert (np.linalg.norm(force - press[:, None] * normal, axis=1) <= mu * press * 1.001 + 1e-5 * weight).all()
