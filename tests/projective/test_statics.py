"""Static equilibrium: a bar that hangs, a cantilever, a chamber that is blown up, and a block on a floor."""

import dataclasses

import numpy as np
import pytest
import torch
from skeletons import arm, simulated
from soft_bodies import breathing, forces_at, simulation, sliding

from warpbots.scene import Box, Constraint, HalfSpace, Material, Scene, SoftBody, floor
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import equilibrium

E, RHO = 1e5, 1000.0
verification = pytest.mark.verification


def rod(gravity: tuple[float, ...], nu: float = 0.3, cells: tuple[int, ...] = (8, 2, 2)) -> Scene:
    """A rod along x in cells of 2 cm that is held at x = 0."""
    root = HalfSpace((1e-6, 0.0, 0.0), (1.0, 0.0, 0.0))
    shape = Box((0.0,) * 3, tuple(0.02 * n for n in cells))
    body = SoftBody("rod", shape, Material(E, nu, RHO), {"root": root})
    return Scene((body,), gravity=gravity, constraints=(Constraint("root"),))


@verification
def test_a_hanging_bar_is_stretched_by_its_weight():
    """u(L) = rho g L^2 / (2 E) without lateral contraction, to 0.4 %.

    Tetrahedra share the weight of a cell among its corners unevenly; over a section the mean is right to 0.2 %.
    """
    g, length = 0.01, 0.16
    solver = ProjectiveDynamics(0.02, tolerance=1e-12)
    model = solver.build(rod((g, 0.0, 0.0), nu=0.0))
    found = equilibrium(solver, model)
    x, X = found.state.position.numpy()[0], model.matter.position
    tip = X[:, 0] > length - 1e-6
    stretch = (x - X)[tip, 0]
    np.testing.assert_allclose(stretch, RHO * g * length**2 / (2.0 * E), rtol=4e-3)
    np.testing.assert_allclose(stretch.mean(), RHO * g * length**2 / (2.0 * E), rtol=2e-3)
    assert found.residual < 1e-9 * RHO * g * length * 0.04**2
    assert found.state.velocity.numpy().max() == 0.0


@verification
def test_a_cantilever_bends_as_in_other_finite_elements():
    """The weight of a rod across it, against linear elements of scikit-fem on the same mesh; g is small."""
    fem = pytest.importorskip("skfem")
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    g = 1e-3
    solver = ProjectiveDynamics(0.02, tolerance=1e-12)
    model = solver.build(rod((0.0, 0.0, -g)))
    X, tets = model.matter.position, model.matter.tets
    basis = fem.Basis(fem.MeshTet(X.T, tets.T), fem.ElementVector(fem.ElementTetP1()))
    K = linear_elasticity(*lame_parameters(E, 0.3)).assemble(basis)
    load = fem.LinearForm(lambda v, w: -RHO * g * v[2]).assemble(basis)
    u = fem.solve(*fem.condense(K, load, D=basis.get_dofs(lambda x: np.isclose(x[0], 0.0))))[basis.nodal_dofs].T
    found = equilibrium(solver, model).state.position.numpy()[0] - X
    np.testing.assert_allclose(found, u, atol=1e-4 * np.abs(u).max())


@verification
def test_forces_of_air_and_matter_balance():
    """At the equilibrium of a finger with two chambers no node is pulled; its residual says so."""
    sim = simulation(breathing(), tolerance=1e-11)
    found = equilibrium(sim.solver, sim.model, np.array([0.5, 0.5]))
    force = forces_at(sim, found.state.position.numpy()[0], 0.5)
    assert np.abs(force).max() < 1e-6 and found.residual < 1e-6
    assert np.abs(forces_at(sim, sim.model.matter.position, 0.5)).max() > 0.1


def test_worlds_bones_and_contact():
    """A block on a floor is carried by it, by its weight; an arm with bones comes to rest on its limit."""
    solver = ProjectiveDynamics(0.04)
    scene = dataclasses.replace(sliding("corotated", (floor(friction=0.5),), (0.0, 0.0, 0.0)), actuators=())
    model = solver.build(scene, worlds=2)
    found = equilibrium(solver, model, dt=0.03)
    force = solver.report(model, 0.03).contact_force.sum(axis=1)
    np.testing.assert_allclose(force, [[0.0, 0.0, 9.81 * RHO * 0.08**3]] * 2, atol=1e-3)
    assert found.residual.shape == (2,)
    sim = simulated(arm("revolute"), cell=0.02)
    rest = equilibrium(sim.solver, sim.model, dt=0.1)
    start = sim.state(**{n: torch.as_tensor(a.numpy()) for n, a in vars(rest.state).items()})
    moved = sim.step(start, torch.zeros(sim.channels)).position - start.position
    assert moved.abs().max() < 1e-3 * sim.model.matter.edge


def test_faults():
    solver = ProjectiveDynamics(0.02)
    model = solver.build(dataclasses.replace(rod((0.0, 0.0, -9.81)), constraints=()))
    with pytest.raises(
        RuntimeError, match=r"equilibrium: a node still moves by .* m in a step .* hold bodies that float"
    ):
        equilibrium(solver, model, dt=0.01, steps=3)
    with pytest.raises(ValueError, match="equilibrium: dt must be positive"):
        equilibrium(solver, model, dt=0.0)
    with pytest.raises(ValueError, match=r"equilibrium: control must have the shape \(1, 0\) or \(0,\), got \(2,\)"):
        equilibrium(solver, model, np.zeros(2))
