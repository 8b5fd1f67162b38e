"""Static equilibrium: a bar that hangs, a cantilever, a chamber that is blown up, and a block on a floor."""

import dataclasses

import numpy as np
import pytest
import torch
from skeletons import arm, simulated
from soft_bodies import breathing, forces_at, simulation, sliding

from warpbots.optimize import Unknown, methods, minimize
from warpbots.scene import Box, Constraint, HalfSpace, Load, Material, Muscle, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, ProjectiveDynamics
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
    assert found.residual < 1e-8 * RHO * g * length * 0.04**2
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
        RuntimeError, match=r"equilibrium: a node still moves by .* m in a step .* constrain free bodies"
    ):
        equilibrium(solver, model, dt=0.01, steps=3)
    with pytest.raises(ValueError, match="equilibrium: dt must be positive"):
        equilibrium(solver, model, dt=0.0)
    with pytest.raises(ValueError, match=r"equilibrium: control must have the shape \(1, 0\) or \(0,\), got \(2,\)"):
        equilibrium(solver, model, np.zeros(2))


def test_signals_out_of_their_range_are_refused():
    """As by a step; the equilibrium under twice the largest stress of a muscle was found without a word."""
    scene = rod((0.0,) * 3, cells=(2, 1, 1))
    (body,), outer = scene.bodies, HalfSpace((0.01, 0.0, 0.0), (-1.0, 0.0, 0.0))
    body = dataclasses.replace(body, regions=body.regions | {"outer": outer})
    muscle = Muscle("pull", "outer", (1.0, 0.0, 0.0), 1e3)
    scene = dataclasses.replace(scene, bodies=(body,), actuators=(muscle,))
    sim = Simulation(scene, ProjectiveDynamics(0.02), 0.01, 1)
    for u in (2.0, -1.5, float("nan")):
        with pytest.raises(ValueError, match=rf"equilibrium: control\[0, 0\] of actuator 'pull' is {u:g}; .* in \[-1"):
            sim.equilibrium(torch.tensor([u]))
    sim.equilibrium(torch.tensor([-1.0]))


def sagged(sim: Simulation, dt: float, control: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
    """A number that depends on where everything rests."""
    rest = sim.equilibrium(control, dt=dt, tolerance=1e-9, **parameters)
    assert rest.velocity.abs().max() == 0.0
    x = rest.position[0]
    weight = torch.sin(torch.arange(x.numel(), dtype=x.dtype)).reshape(x.shape)
    return (weight * x).sum() + (rest.q.sum() if hasattr(rest, "q") else 0.0)


def jointed() -> Scene:
    """A bone on a sprung joint under the weight of soft matter; a fibre pulls at it."""
    scene = arm("revolute")
    joint = dataclasses.replace(scene.joints[0], stiffness=0.5)
    return dataclasses.replace(scene, joints=(joint, *scene.joints[1:]))


@verification
@pytest.mark.parametrize(
    ("scene", "cell"),
    [
        pytest.param(lambda: rod((0.0, 0.0, -9.81), cells=(4, 2, 2)), 0.02, id="rod"),
        pytest.param(breathing, 0.02, id="chambers", marks=pytest.mark.slow),
        pytest.param(jointed, 0.02, id="bones", marks=pytest.mark.slow),
    ],
)
def test_derivatives_of_the_equilibrium_are_those_of_differences(scene, cell):
    """With respect to controls and all parameters that have any; the same whatever the length of a step is."""
    sim = Simulation(scene(), ProjectiveDynamics(cell, tolerance=1e-12), 0.01, 1)
    control = 0.3 * torch.ones(sim.channels, dtype=torch.float64)
    given = {
        n: sim.parameter(n) for n in ("youngs_modulus", "density", "gravity", "stiffness") if n in sim.parameters()
    }
    inputs = {"control": control} | given
    leaves = {n: t.clone().requires_grad_() for n, t in inputs.items()}
    found = {}
    for dt in (1.0, 0.1):
        value = sagged(sim, dt, **leaves)
        gradients = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
        found[dt] = dict(zip(leaves, gradients, strict=True))
    draw = torch.Generator().manual_seed(0)
    for name, tensor in inputs.items():
        direction = torch.randn(tensor.shape, generator=draw, dtype=tensor.dtype) * tensor.abs().clamp(min=0.1)
        if not direction.numel() or found[1.0][name] is None:
            continue
        step = 1e-4
        ends = [sagged(sim, 1.0, **(inputs | {name: tensor + s * step * direction})).item() for s in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / (2.0 * step)
        for gradient in (found[1.0][name], found[0.1][name]):
            assert (gradient * direction).sum().item() == pytest.approx(slope, rel=1e-5, abs=1e-9), name


def test_stiffness_is_identified_from_a_sag_at_rest():
    """In a few iterations and without a motion."""
    sim = Simulation(rod((0.0, 0.0, -9.81), cells=(4, 2, 2)), ProjectiveDynamics(0.02), 0.01, 1)
    seen = sim.equilibrium(youngs_modulus=torch.tensor(7e4)).position
    E = torch.tensor(2e5, requires_grad=True)
    loss = lambda: 1e4 * (sim.equilibrium(youngs_modulus=E).position - seen).square().mean()
    unknown = Unknown(E, 5e4, 1e6, scale=1e5)
    minimize(loss, unknown, methods.SciPy("L-BFGS-B"), iterations=15, progress=False)
    assert E.item() == pytest.approx(7e4, rel=1e-3)


def test_solvers_without_statics_say_so():
    """Projective dynamics finds one, but takes no scene in 2D."""
    for dim, words in ((3, "use ProjectiveDynamics, or give the material damping"), (2, "give the material damping")):
        cube = SoftBody("cube", Box((0.0,) * dim, (0.1,) * dim), Material(1e4))
        sim = Simulation(Scene([cube]), MPM(0.05), 1e-3, 1)
        with pytest.raises(TypeError, match=f"equilibrium: MPM finds none; {words}"):
            sim.equilibrium()
    sim = Simulation(rod((0.0, 0.0, -9.81)), ProjectiveDynamics(0.02), 0.01, 1)
    with pytest.raises(ValueError, match="equilibrium: dt must be positive"):
        sim.equilibrium(dt=0.0)
    with pytest.raises(ValueError, match="equilibrium: tolerance must be positive"):
        sim.equilibrium(tolerance=-1.0)
    with pytest.raises(ValueError, match="parameter 'youngs_modulus' must be in"):
        sim.equilibrium(youngs_modulus=torch.tensor(-1.0))


@verification
def test_long_steps_stay_at_an_equilibrium_that_short_steps_leave():
    """A column under 2.5 times Euler's load and 2 % of it to the side: upright it is in equilibrium, but unstable.

    Beyond Euler's load the deflection of the upright equilibrium is against the load to the side.
    """
    length, width = 0.2, 0.02
    euler = np.pi**2 * E * width**4 / 12.0 / (2.0 * length) ** 2
    ends = {
        "root": Box((0.0,) * 3, (width, width, 1e-3)),
        "tip": Box((0.0, 0.0, length - 1e-3), (width, width, length)),
    }
    column = SoftBody("column", Box((0.0,) * 3, (width, width, length)), Material(E, 0.3, RHO), ends)
    scene = Scene(
        (column,), gravity=(0.0,) * 3, constraints=(Constraint("root"),),
        loads=(Load("tip", (0.02 * euler, 0.0, -2.5 * euler)),),
    )  # fmt: skip
    sim = Simulation(scene, ProjectiveDynamics(0.01, elements="tetrahedra"), dt=1e-2)
    tip = sim.state().position[0, :, 2] > length - 1e-3

    def moved(dt: float) -> torch.Tensor:
        return (sim.equilibrium(dt=dt).position - sim.state().position)[0, tip, 0].mean()

    with pytest.warns(UserWarning, match="an equilibrium is unstable: a small push of SoftBody 'column'"):
        assert -0.01 < moved(1.0) < -0.001
    assert moved(0.1) > 0.5 * length
