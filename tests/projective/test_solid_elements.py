"""Quadratic tetrahedra and hexahedra against scikit-fem, closed forms and themselves."""

import dataclasses

import numpy as np
import pytest
import torch
from skeletons import arm
from soft_bodies import forces_at

from warpbots.numerics import real_numpy
from warpbots.scene import (
    Box,
    Constraint,
    Cylinder,
    HalfSpace,
    Load,
    Material,
    Posed,
    RigidBody,
    Scene,
    SceneError,
    SoftBody,
    Union,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, ProjectiveDynamics
from warpbots.solvers.projective.elements.reference_elements import SOLIDS

KINDS = ("quadratic_tetrahedra", "hexahedra")
"""Elements with several points of quadrature."""

DOUBLE = real_numpy is np.float64
UPRIGHT = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
"""A quarter turn about z, as rows."""


def bar(kind: str, cells: tuple[int, int, int], size: float = 0.04, nu: float = 0.3, law: str = "linear", **options):
    """A bar of cells of this size, which is fixed at x = 0 and has a region at its tip."""
    upper = tuple(size * n for n in cells)
    ends = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "tip": HalfSpace((upper[0] - 1e-6, 0, 0), (-1, 0, 0))}
    body = SoftBody("bar", Box((0, 0, 0), upper), Material(1e5, nu, 1000.0, law), ends)
    scene = Scene((body,), (), (), (0, 0, 0), constraints=(Constraint("root"),), loads=(Load("tip", (0, 0, -1e-4)),))
    scene = dataclasses.replace(scene, **options)
    return Simulation(scene, ProjectiveDynamics(size, elements=kind, collisions=False), 1e3)


def judged(sim: Simulation, E: np.ndarray | float = 1e5, nu: float = 0.3):
    """Stiffness matrix [N/m] and consistent masses over density [m^3] by scikit-fem, in the order of our nodes.

    Args:
        sim: A simulation of one body.
        E: Young's modulus of the elements [Pa], shape (n_solids,), or of all.
        nu: Poisson's ratio.
    """
    fem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, dot, eye, sym_grad, trace

    mesh = sim.model.matter
    if mesh.solid.name == "hexahedra":
        cell = mesh.hexahedra[:, [7, 6, 5, 3, 4, 2, 1, 0]]  # scikit-fem begins at the largest corner
        solid, element, order = fem.MeshHex(mesh.position.T, cell.T), fem.ElementHex1(), 3
    else:
        corners = mesh.quadratic_tets[:, :4]
        solid = fem.MeshTet(mesh.position[: corners.max() + 1].T, corners.T)
        element, order = fem.ElementTetP2(), 2
    basis = fem.Basis(solid, fem.ElementVector(element), intorder=order)
    E = np.broadcast_to(E, len(mesh.solids))[:, None]
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))

    @fem.BilinearForm
    def stiffness(u, v, w):
        strain = sym_grad(u)
        return ddot(2 * mu * strain + eye(lam * trace(strain), 3), sym_grad(v))

    mass = fem.BilinearForm(lambda u, v, w: dot(u, v)).assemble(
        fem.Basis(solid, fem.ElementVector(element), intorder=4)
    )
    where = basis.doflocs[:, 0::3].T
    order = np.linalg.norm(where[None] - mesh.position[:, None], axis=2).argmin(axis=1)
    assert sorted(order) == list(range(len(mesh)))
    dofs = (3 * order[:, None] + np.arange(3)).reshape(-1)
    return stiffness.assemble(basis)[dofs][:, dofs], mass[dofs][:, dofs]


@pytest.mark.parametrize("kind", SOLIDS)
def test_shape_functions_reproduce_linear_fields(kind, rng):
    """Their gradients sum to 0 and those of x to 1 in an element of any shape; the pieces of an element fill it."""
    e, n = SOLIDS[kind], len(SOLIDS[kind].shares)
    rest = {"tets": np.vstack([np.zeros(3), np.eye(3)]), "hexahedra": np.array(list(np.ndindex(2, 2, 2)), dtype=float)}
    x = rest.get(kind)
    if x is None:
        corners = rest["tets"]
        x = np.concatenate(
            [corners, [(corners[a] + corners[b]) / 2 for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]]
        )
    x = x + 0.03 * rng.uniform(-1, 1, x.shape)
    node = np.arange(n)[None]
    G = e.gradients @ np.linalg.inv(e.jacobians(x, node))
    assert np.abs(G.sum(axis=2)).max() < 1e-14
    assert np.abs(np.einsum("ai,eqaj->eqij", x, G) - np.eye(3)).max() < 1e-13
    assert e.shares.sum() == pytest.approx(1.0, abs=1e-15)
    straight = (
        x if kind != "quadratic_tets" else np.concatenate([x[:4], (x[:4][:, None] + x[:4])[np.triu_indices(4, 1)] / 2])
    )
    pieces = np.linalg.det(straight[e.tets][:, 1:] - straight[e.tets][:, :1]) / 6.0
    assert (pieces > 0.0).all()
    if kind != "hexahedra":  # whose faces are curved here
        assert pieces.sum() == pytest.approx(e.volumes(straight, node).sum(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_stiffness_is_that_of_another_code(kind, rng):
    """Forces of random displacements under Hooke's law, and the shares of mass of the diagonal of its mass matrix."""
    sim = bar(kind, (2, 1, 1))
    mesh, free = sim.model.matter, ~sim.model.topology.fixed
    K, M = judged(sim)
    u = 1e-3 * rng.uniform(-1, 1, mesh.position.shape)
    ours = forces_at(sim, mesh.position + u)[free]
    theirs = -(K @ u.reshape(-1)).reshape(-1, 3)[free]
    load = sim.parameter("load")[0].numpy()[free]
    assert np.abs(ours - load - theirs).max() < (1e-11 if DOUBLE else 2e-4) * np.abs(theirs).max()
    one = SOLIDS[mesh.solid.name]
    alone = {"quadratic_tets": [1.0] * 4 + [16.0 / 3.0] * 6, "hexahedra": [1.0] * 8}[one.name]
    assert np.allclose(one.shares, np.array(alone) / sum(alone), atol=1e-15)
    diagonal = M.diagonal()[::3]  # of congruent elements: in proportion to the sum of their shares
    assert np.allclose(diagonal / diagonal.sum(), mesh.volume / mesh.volume.sum(), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_moduli_over_three_decades_as_in_topology_optimisation(kind, rng):
    """One modulus for each cell: the deflection under a load at the tip is that of another code."""
    sim = bar(kind, (4, 2, 2))
    mesh = sim.model.matter
    cell = (mesh.position[mesh.solids].mean(axis=1) / 0.04).astype(int)
    E = 1e5 * 10.0 ** (-3.0 * rng.uniform(size=(4, 2, 2)))[tuple(cell.T)]
    u = sim.rollout(None, 2, youngs_modulus=torch.as_tensor(E)).final.position[0].numpy() - mesh.position
    K, _ = judged(sim, E)
    free = np.repeat(~sim.model.topology.fixed, 3)
    load = sim.parameter("load")[0].numpy().reshape(-1)
    expected = np.zeros(len(load))
    expected[free] = np.linalg.solve(K[free][:, free].toarray(), load[free])
    ours, theirs = (load * u.reshape(-1)).sum(), (load * expected).sum()
    assert ours == pytest.approx(theirs, rel=1e-6 if DOUBLE else 1e-3)


@pytest.mark.parametrize("law", ["linear", "neo_hookean"])
@pytest.mark.parametrize("kind", KINDS)
def test_patch_test(kind, law, rng):
    """A homogeneous deformation of the skin of an irregular mesh is that of its inside."""
    skin = Union([HalfSpace(p, n) for p, n in (
        ((1e-6, 0, 0), (1, 0, 0)), ((0.08 - 1e-6, 0, 0), (-1, 0, 0)), ((0, 1e-6, 0), (0, 1, 0)),
        ((0, 0.08 - 1e-6, 0), (0, -1, 0)), ((0, 0, 1e-6), (0, 0, 1)), ((0, 0, 0.08 - 1e-6), (0, 0, -1)),
    )])  # fmt: skip
    body = SoftBody("cube", Box((0, 0, 0), (0.08, 0.08, 0.08)), Material(1e5, 0.45, 1000.0, law), {"skin": skin})
    scene = Scene((body,), gravity=(0, 0, 0), constraints=(Constraint("skin"),))
    sim = Simulation(scene, ProjectiveDynamics(0.04, elements=kind, collisions=False), 10.0)
    fixed, X = sim.model.topology.fixed, sim.model.matter.position.copy()
    assert 0 < (~fixed).sum() < len(X)
    corner = (np.abs(X - 0.04) < 1e-6).all(axis=1)
    X[corner] += 0.004  # of quadratic elements the middles of the edges there move half as far, edges stay straight
    if kind == "quadratic_tetrahedra":
        table = sim.model.matter.quadratic_tets
        for k, (a, b) in enumerate(((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))):
            X[table[:, 4 + k]] = (X[table[:, a]] + X[table[:, b]]) / 2
    A = np.eye(3) + 0.1 * rng.uniform(-1, 1, (3, 3))
    x = X @ A.T
    state = sim.state(position=torch.as_tensor(np.where(fixed[:, None], x, X)))
    moved = {"rest_position": torch.as_tensor(X), "anchor": torch.as_tensor(x[fixed])}
    end = sim.rollout(None, 3, state, **moved).final.position[0].numpy()
    assert np.abs(end - x).max() < (1e-9 if DOUBLE else 1e-6)
    found = sim.sense(sim.state(position=torch.as_tensor(x)), torch.zeros(0), **moved)
    strain = found.strain[0].numpy()
    assert np.abs(strain - (A.T @ A - np.eye(3)) / 2).max() < (1e-12 if DOUBLE else 1e-5)
    stress = found.stress[0].numpy()
    assert np.ptp(stress, axis=0).max() < (1e-10 if DOUBLE else 1e-4) * np.abs(stress).max() > 0.0


@pytest.mark.parametrize(
    ("kind", "cells", "nu", "least", "most"),
    [
        ("quadratic_tetrahedra", 1, 0.0, -0.01, 0.01),
        ("quadratic_tetrahedra", 2, 0.3, -0.01, 0.01),
        ("quadratic_tetrahedra", 2, 0.49, -0.01, 0.01),
        ("tetrahedra", 2, 0.49, -0.45, -0.35),
        ("hexahedra", 2, 0.0, -0.13, -0.09),
    ],
)
def test_a_slender_cantilever_bends(kind, cells, nu, least, most):
    """Its sag relative to quadratic hexahedra of scikit-fem, which are within 0.1 % of finer ones."""
    fem = pytest.importorskip("skfem")
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    sim = bar(kind, (8 * cells, cells, cells), 0.08 / cells, nu, loads=(), gravity=(0, 0, -1e-3))
    x = sim.rollout(None, 4).final.position[0].numpy()
    sag = -(x - sim.model.matter.position)[sim.region("tip"), 2].mean()
    along, across = np.linspace(0, 0.64, 17), np.linspace(0, 0.08, 3)
    solid = fem.MeshHex.init_tensor(along, across, across)
    basis = fem.Basis(solid, fem.ElementVector(fem.ElementHex2()))
    K = linear_elasticity(*lame_parameters(1e5, nu)).assemble(basis)
    load = fem.LinearForm(lambda v, w: -1.0 * v[2]).assemble(basis)
    u = fem.solve(*fem.condense(K, load, D=basis.get_dofs(lambda x: np.isclose(x[0], 0.0))))
    expected = -float((basis.probes(np.array([[0.64], [0.04], [0.04]])) @ u)[-1])
    assert least < sag / expected - 1.0 < most


@pytest.mark.parametrize("kind", KINDS)
def test_masses_and_places(kind):
    """All masses are positive and make that of the body; a turned box has the same elements; its surface is closed."""
    shape = Posed(Box((0, 0, 0), (0.12, 0.08, 0.04)), (0.1, 0.2, 0.3), UPRIGHT)
    sim = Simulation(
        Scene((SoftBody("box", shape, Material(1e5, 0.3, 700.0)),)), ProjectiveDynamics(0.04, elements=kind), 0.01
    )
    mesh = sim.model.matter
    volume = 0.12 * 0.08 * 0.04
    assert (mesh.volume > 0.0).all() and mesh.volume.sum() == pytest.approx(volume, rel=1e-12)
    assert mesh.element_volume.sum() == pytest.approx(volume, rel=1e-12)
    assert np.allclose(mesh.volume @ mesh.position / volume, [0.1 - 0.04, 0.2 + 0.06, 0.3 + 0.02], atol=1e-12)
    (part,) = mesh.meshes
    a, b, c = (mesh.position[part.faces[:, k]] for k in range(3))
    assert np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0 == pytest.approx(volume, rel=1e-12)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    assert area == pytest.approx(2 * (0.12 * 0.08 + 0.08 * 0.04 + 0.04 * 0.12), rel=1e-12)


def test_a_body_rests_on_its_midside_nodes():
    """A block on a floor exerts its weight, and no node sinks in."""
    body = SoftBody("block", Box((0, 0, 1e-4), (0.08, 0.08, 0.0801)), Material(1e5, 0.3, 1000.0))
    sim = Simulation(Scene((body,), (), (floor(),)), ProjectiveDynamics(0.04, elements="quadratic_tetrahedra"), 0.02)
    end = sim.rollout(None, 30).final
    assert end.position[0, :, 2].min() > -1e-6
    force = sim.report().contact_force[0].sum(axis=0)
    assert force[2] == pytest.approx(1000.0 * 0.08 * 0.08 * 0.08 * 9.81, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_bones_in_next_to_no_matter_move_as_articulated_bodies(kind):
    """Nodes that are bound to them, in the middles of edges too, keep their distances."""
    scene = arm("ball", material=Material(1e-3, 0.3, 1e-4), velocity=2.0, upper=0.3)
    bodies = tuple(b for b in scene.bodies if isinstance(b, RigidBody))
    alone = Scene(bodies, scene.actuators, joints=scene.joints, gravity=scene.gravity)
    control = torch.full((10, 1), 0.8)
    sim = Simulation(scene, ProjectiveDynamics(0.02, elements=kind, collisions=False), 5e-3)
    end = sim.rollout(control, 10).final
    bare = Simulation(alone, Articulated("bdf1"), 5e-3, substeps=1).rollout(control, 10).final
    np.testing.assert_allclose(end.q, bare.q, atol=2e-6)
    bound = sim.model.matter.bone == 1
    x, X = end.position[0, bound].double().numpy(), sim.model.matter.position[bound]
    d, D = (np.linalg.norm(p[:, None] - p, axis=2) for p in (x, X))
    assert np.abs(d - D).max() < 1e-6


@pytest.mark.verification
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_with_bones(kind, rng):
    """With respect to parameters of matter and of a joint, and the control, against central differences."""
    sim = Simulation(
        arm("revolute", Material(5e4, 0.3, 1000.0, "neo_hookean")),
        ProjectiveDynamics(0.02, elements=kind, collisions=False, tolerance=1e-13), 5e-3,
    )  # fmt: skip
    names = "youngs_modulus", "poissons_ratio", "density", "joint_stiffness"
    inputs = {n: sim.parameter(n).double() for n in names} | {"control": torch.full((1, 2, 1), 0.5)}
    weight = torch.as_tensor(rng.normal(size=sim.state().position.shape))

    def loss(given: dict) -> torch.Tensor:
        own = dict(given)
        end = sim.rollout(own.pop("control"), 2, **own).final
        return (weight * end.velocity).sum() + 100.0 * end.q.sum()

    leaves = {n: v.clone().double().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    for name, value in inputs.items():
        d = torch.as_tensor(rng.uniform(-1, 1, value.shape)) * value
        size = 0.1 if name == "joint_stiffness" else 1e-3  # its slope is small, near the rounding of short differences
        with torch.no_grad():
            there, back, far, far_back = (
                float(loss(inputs | {name: value + s * size * d})) for s in (1.0, -1.0, 2.0, -2.0)
            )
        slope = (8.0 * (there - back) - (far - far_back)) / (12.0 * size)  # differences of fourth order
        assert float((leaves[name].grad * d).sum()) == pytest.approx(slope, rel=1e-6), name


def test_only_a_box_has_hexahedra():
    body = SoftBody("rod", Cylinder((0, 0, 0), (0, 0, 0.1), 0.02), Material(1e5))
    with pytest.raises(SceneError, match="a Cylinder has no grid of hexahedra, only a Box in 3D has one"):
        ProjectiveDynamics(0.02, elements="hexahedra").build(Scene((body,)))


def test_elements_that_are_unknown_are_refused():
    with pytest.raises(
        ValueError, match="elements must be one of 'tetrahedra', 'quadratic_tetrahedra', 'hexahedra', got 'cubic'"
    ):
        ProjectiveDynamics(0.02, elements="cubic")
