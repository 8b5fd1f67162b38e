"""Sheets along their normals, which the iteration resists by their own stiffness, and minima that it does not pass by."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from soft_bodies import DT, cloth, iterations
from test_adjoint_solve import second_derivative

from warpbots.numerics import NODE, precision, real, real_numpy
from warpbots.scene import Constraint, Fluid, HalfSpace, Material, Scene, Sheet, SoftBody, Sphere, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_rest
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.second_derivative import SecondDerivative


class Normals:
    """Normals N as columns and the bound D at displacements `u` of a sheet that nothing holds, with H and B^-1."""

    def __init__(self, scene: Scene, u: np.ndarray):
        solver = ProjectiveDynamics(0.04, collisions=False)
        self.model = model = solver.build(scene)
        state, control = solver.state(model), wp.zeros((1, 0), dtype=real, device=model.device)
        n, at = model.topology.sizes.nodes, np.zeros((model.topology.sizes.stride, 4), dtype=real_numpy)
        at[:n, :3] = u
        model.workspace.displacement.assign(at)
        start = state.position.flatten()
        everywhere = model.workspace.everywhere
        self.point = Point(everywhere, control, start, model.workspace.displacement, real(DT), state.time)
        evaluate_rest(model, self.point)
        self.step = GlobalStep(model, model.matrices.of(DT), start)
        self.step.measure(state.velocity.flatten(), dataclasses.replace(self.point, u=model.workspace.zero))
        self.step.free_normals(self.point)
        normals = model.matrices.of(DT).normals
        self.number, self.D = normals.number.numpy(), 1.0 / normals.gain.numpy()
        self.N = np.zeros((3 * n, normals.count))
        for i, node in enumerate(normals.member.numpy()):
            self.N[3 * node : 3 * node + 3, i] = normals.normal.numpy()[i]

    def largest_ratio(self) -> float:
        """The largest eigenvalue of D^-1 N^T H N."""
        SecondDerivative(self.model, self.step, self.point).evaluate()
        H, free = second_derivative(self.model, 0).toarray(), np.repeat(~self.model.topology.fixed, 3)
        N = self.N[free] / np.sqrt(self.D)
        return float(np.linalg.eigvalsh(N.T @ H @ N).max())

    def solved(self, r: np.ndarray) -> np.ndarray:
        """B^-1 r by the global step, shape (n_nodes, 3)."""
        sizes, workspace = self.model.topology.sizes, self.model.workspace
        wide = np.zeros((sizes.stride, 4), dtype=real_numpy)
        wide[: sizes.nodes, :3] = r
        f = wp.zeros_like(workspace.residual)
        workspace.residual.assign(wide)
        self.step.place(workspace.everywhere, self.point.u)
        self.step.solve(workspace.everywhere, workspace.residual, f, linear=True)
        return f.numpy().reshape(-1, 4)[: sizes.nodes, :3]


def shapes(rng: np.random.Generator, x: np.ndarray) -> dict[str, np.ndarray]:
    """Displacements of a sheet: none, tension, rolled up, and crumpled."""
    roll = np.column_stack([0.05 * np.sin(20 * x[:, 0]) - x[:, 0], 0 * x[:, 0], 0.05 - 0.05 * np.cos(20 * x[:, 0])])
    return {"none": 0 * x, "tension": 0.1 * x, "rolled": roll, "crumpled": 6e-3 * rng.normal(size=x.shape)}


@pytest.mark.verification
@pytest.mark.parametrize("curved", [False, True], ids=["flat", "curved"])
@pytest.mark.parametrize("shape", ["none", "tension", "rolled", "crumpled"])
def test_nothing_along_normals_is_stiffer_than_the_bound(shape, curved, rng):
    """Eigenvalues of D^-1 N^T H N are at most 1, and the largest is not far below."""
    scene = cloth(held=False)
    if not curved:
        sheet = Sheet.rectangle((0, 0), (0.16, 0.12), 2e-3, (4, 3), bending=2e-4)
        scene = dataclasses.replace(scene, bodies=(dataclasses.replace(scene.bodies[0], shape=sheet),))
    x = ProjectiveDynamics(0.04).build(scene).matter.position
    ratio = Normals(scene, shapes(rng, x)[shape]).largest_ratio()
    assert 0.2 < ratio <= 1.0 + 1e-9


@pytest.mark.verification
def test_a_global_step_moves_nodes_along_their_normals(rng):
    """What two sheets differ by, one with normals and one without, is N D^-1 N^T r; fixed nodes have no normal."""
    scene = cloth()
    x = ProjectiveDynamics(0.04).build(scene).matter.position
    sheet, r = Normals(scene, shapes(rng, x)["crumpled"]), rng.normal(size=x.shape)
    with_normals = sheet.solved(r)
    sheet.model.matrices.of(DT).normals.gain.zero_()
    expected = sheet.N @ (sheet.N.T @ r.reshape(-1) / sheet.D)
    np.testing.assert_allclose((with_normals - sheet.solved(r)).reshape(-1), expected, atol=1e-12 * abs(expected).max())
    assert (sheet.number[: len(x)] < 0).tolist() == sheet.model.topology.fixed.tolist()


@pytest.mark.parametrize("kind", ["air", "damped"])
def test_nodes_of_other_elements_have_no_free_normal(kind):
    scene = cloth(held=False)
    if kind == "air":
        scene = dataclasses.replace(scene, fluid=Fluid(1.2))
    else:
        body = scene.bodies[0]
        material = dataclasses.replace(body.material, damping=0.01)
        scene = dataclasses.replace(scene, bodies=(dataclasses.replace(body, material=material),))
    assert ProjectiveDynamics(0.04).build(scene).matrices.of(DT).normals.count == 0


def pushed_together(cells: int = 9) -> Simulation:
    """A thin square sheet between two held sides, with steps of 10 ms."""
    half = 0.07
    sheet = Sheet.rectangle((-half, -0.5 * half), (half, 0.5 * half), 5e-4, (cells, cells), bending=9e-6)
    sides = {f"side {s:+d}": HalfSpace((s * (half - 1e-6), 0, 0), (-s, 0, 0)) for s in (-1, 1)}
    body = SoftBody("cloth", sheet, Material(6e5, 0.3, 300.0), sides)
    held = tuple(Constraint(name, name=name) for name in sides)
    return Simulation(Scene((body,), constraints=held), ProjectiveDynamics(0.02, max_halvings=0), 0.01)


def smallest_eigenvalue(sim: Simulation, start: object, end: object) -> float:
    """Of H at the end of a step, relative to the largest one."""
    model = sim.model
    u = (end.position - start.position)[0].numpy()
    at = np.zeros((model.topology.sizes.stride, 4), dtype=real_numpy)
    at[: len(u), :3] = u
    x = wp.array(start.position[0].numpy().astype(real_numpy), dtype=model.nodes.anchor.dtype)
    control, time = wp.zeros((1, 0), dtype=real), wp.zeros((1, 0), dtype=wp.float64)
    point = Point(model.workspace.everywhere, control, x, wp.array(at, dtype=NODE), real(0.01), time)
    SecondDerivative(model, GlobalStep(model, model.matrices.of(0.01), x), point).evaluate()
    H = np.linalg.eigvalsh(second_derivative(model, 0, 0.01).toarray())
    return float(H[0] / H[-1])


def test_a_sheet_that_buckles_ends_at_a_minimum():
    """Flat, it is at a saddle with dozens of negative eigenvalues; each step is found, and ends where there are none."""
    sim = pushed_together()
    state, anchor = sim.state(), sim.parameter("anchor")
    for k in range(8):
        nearer = anchor * torch.tensor([1.0 - 0.0132 * (k + 1), 1.0, 1.0])
        before, state = state, sim.step(state, torch.zeros(0), anchor=nearer)
        assert smallest_eigenvalue(sim, before, state) > -1e-6
    assert (state.position[0, :, 2].max() - state.position[0, :, 2].min()) > 0.01


@pytest.mark.parametrize("friction", [0.0, 0.6])
def test_forces_of_contacts_move_normals_too(friction):
    """A thin sheet that falls flat onto a table lies there after a few iterations: all nodes meet it at once."""
    sheet = Sheet.rectangle((-0.07, -0.07), (0.07, 0.07), 5e-4, (8, 8), height=2e-3, bending=8e-6)
    body = SoftBody("cloth", sheet, Material(7e5, 0.3, 300.0), friction=friction)
    scene = Scene((body,), obstacles=(floor(0.0, friction=friction),))
    sim = Simulation(scene, ProjectiveDynamics(0.02, max_halvings=0), 0.01)
    state, counts = sim.state(velocity=torch.tensor([0.2, 0.0, -0.2]).expand(81, 3)), []
    for _ in range(10):
        state = sim.step(state, torch.zeros(0))
        counts.append(iterations(sim))
    assert max(counts) < 40, counts
    assert abs(state.position[0, :, 2]).max() < 1e-6


@pytest.mark.skipif(precision == "float64", reason="of single precision")
def test_rounding_does_not_push_a_sheet_out_of_its_plane():
    """A sheet that swings from two corners: corrections reach the tolerance, below the rounding of E times the area."""
    sheet = Sheet.rectangle((-0.12, -0.12), (0.12, 0.12), 5e-4, (8, 8), bending=2.9e-6)
    pins = {f"pin {k}": Sphere((s * 0.12, 0.12, 0.0), 1e-3) for k, s in enumerate((-1, 1))}
    body = SoftBody("cloth", sheet, Material(1.2e6, 0.3, 300.0), pins)
    scene = Scene((body,), constraints=tuple(Constraint(name, name=name) for name in pins))
    sim, counts = Simulation(scene, ProjectiveDynamics(0.02, max_halvings=0), 0.01), []
    state = sim.state()
    for _ in range(15):
        state = sim.step(state, torch.zeros(0))
        counts.append(iterations(sim))
    assert max(counts) < 60, counts
