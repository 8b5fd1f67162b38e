"""Laws with constants of their own, in the solvers of continua: gradients, refusals, records, and the edge of a law."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from cases import LAW_CASES, SOLVERS, block, to_numpy
from law_points import evaluate

from warpbots import materials
from warpbots.materials import CONSTANTS, gent
from warpbots.numerics import matrix, real
from warpbots.scene import Box, Material, Scene, SceneError, SoftBody
from warpbots.simulation import Simulation, SimulationError

WITH_CONSTANTS = tuple(law for law, case in LAW_CASES.items() if case.constants)
QUICK = {("gent", "mpm", 2), ("ogden", "mpm", 3), ("mooney_rivlin", "projective", 3)}
EVERY = [
    pytest.param(law, solver, dim, marks=() if (law, solver, dim) in QUICK else pytest.mark.slow)
    for law in WITH_CONSTANTS
    for solver, dim in (("mpm", 2), ("mpm", 3), ("projective", 3))
]


def deformation_of(dim: int) -> np.ndarray:
    """The deformation gradient of `stretched`."""
    A = np.eye(dim) + 0.2 * np.roll(np.eye(dim), 1, 0)
    A[0, 0] = 1.4
    return A


def stretched(law: str, solver: str, dim: int, incompressibility: int = 0) -> tuple[Simulation, dict]:
    """A block whose matter is stretched and sheared at the start, and that state."""
    scene = dataclasses.replace(block(dim, law, incompressibility), gravity=(0.0,) * dim)
    sim = Simulation(scene, SOLVERS[solver](1 / 8), 2e-3, None)
    A = torch.as_tensor(deformation_of(dim))
    rest = sim.state()
    start = {"position": rest.position @ A.T.to(rest.position)}
    if solver == "mpm":
        start["position"] -= start["position"].mean(1, keepdim=True) - 0.5
        start["deformation"] = A.to(rest.deformation).expand(rest.deformation.shape)
    return sim, start


@pytest.mark.verification
@pytest.mark.parametrize(("law", "solver", "dim"), EVERY)
def test_gradients_to_the_constants_are_the_differences(law, solver, dim, rng):
    """Of a rollout's loss, for constants that differ from point to point: slopes to 1e-6, remainders of second order."""
    sim, start = stretched(law, solver, dim)
    final = sim.rollout(None, 2, sim.state(**start)).final
    weights = torch.as_tensor(rng.normal(size=final.position.shape))

    def loss(**constants):
        final = sim.rollout(None, 2, sim.state(**start), **constants).final
        return (weights * (final.position + 0.01 * final.velocity)).sum()

    names = list(LAW_CASES[law].constants)
    at = {n: sim.parameter(n) * (1 + 0.1 * torch.as_tensor(rng.uniform(-1, 1, sim.parameter(n).shape))) for n in names}
    leaves = {n: t.clone().requires_grad_() for n, t in at.items()}
    gradients = dict(zip(names, torch.autograd.grad(loss(**leaves), list(leaves.values())), strict=True))
    for name, gradient in gradients.items():
        direction = at[name] * torch.as_tensor(rng.uniform(-1, 1, at[name].shape))
        slope = float((gradient * direction).sum())
        assert abs(slope) > 1e-6, name

        def moved(h: float, name=name, direction=direction) -> float:
            return float(loss(**{**at, name: at[name] + h * direction}))

        h = 1e-3
        assert (moved(h) - moved(-h)) / (2 * h) == pytest.approx(slope, rel=1e-5), name
        remainders = [
            abs(moved(h) - moved(0.0) - h * slope) for h in (0.04, 0.02, 0.01)
        ]  # terms of third order are below
        orders = np.log2(np.array(remainders[:-1]) / remainders[1:])
        assert (np.abs(orders - 2.0) < 0.2).all(), (name, orders)


@pytest.mark.verification
@pytest.mark.parametrize(("law", "solver", "dim"), EVERY)
def test_matter_of_each_region_has_its_own_constants(law, solver, dim):
    """The Cauchy stress of a uniform deformation, against the law at a point with the constants of the region."""
    plain = stretched(law, solver, dim)[0].scene.bodies[0]
    other = {name: 0.7 * value for name, value in LAW_CASES[law].constants.items()}
    root = {"root": dataclasses.replace(plain.material, constants=other)}
    scene = Scene([dataclasses.replace(plain, region_materials=root)], domain=((0.0,) * dim, (1.0,) * dim))
    sim = Simulation(scene, SOLVERS[solver](1 / 8), 2e-3, None, worlds=2)
    _, start = stretched(law, solver, dim)
    start = {name: value.expand(2, *value.shape[1:]) for name, value in start.items()}
    stress = to_numpy(sim.sense(sim.state(**start)).stress)[1]
    centers = sim.model.places({"mpm": "particle", "projective": "element"}[solver]).center
    inside = centers[:, 0] < 0.375
    assert 0 < inside.sum() < len(inside)
    F = deformation_of(dim)
    for constants, own in ((LAW_CASES[law].constants, ~inside), (other, inside)):
        tau = evaluate(law, 0, F[None], E=1e4, constants=constants).stress[0]
        np.testing.assert_allclose(
            stress[own], np.broadcast_to(tau / np.linalg.det(F), stress[own].shape), rtol=1e-10, atol=1e-8
        )


@pytest.mark.parametrize("solver", ["mpm", "projective"])
@pytest.mark.parametrize(
    ("law", "constants", "words"),
    [
        ("gent", {}, r"law 'gent' needs locking_invariant, J_m \[1\], .*constants={'locking_invariant': \.\.\.}\), in"),
        (
            "gent",
            {"J_m": 3.0},
            r"constants\['J_m'\] = 3: law 'gent' has the constants locking_invariant; leave 'J_m' out",
        ),
        ("gent", {"locking_invariant": 0.0}, r"constants\['locking_invariant'\] = 0: .* must be in \(0, inf\) for law"),
        ("ogden", {"exponent": -2.0}, r"constants\['exponent'\] = -2: .* must be in \(0\.1, inf\) for law 'ogden'"),
        ("neo_hookean", {"exponent": 2.0}, r"law 'neo_hookean' has no constants of its own; leave 'exponent' out"),
    ],
)
def test_wrong_constants_are_refused_before_anything_runs(solver, law, constants, words):
    box = Box((0.0,) * 3, (0.2,) * 3)
    materials = Material(1e4, law=law, constants=LAW_CASES[law].constants), Material(1e4, law=law, constants=constants)
    body = SoftBody("finger", box, materials[0], {"tip": box}, {"tip": materials[1]})
    with pytest.raises(SceneError, match=f"^SoftBody 'finger', region 'tip': .*{words}"):
        Simulation(Scene([body]), SOLVERS[solver](0.1), 1e-3, None)


def test_constants_that_would_be_one_parameter_are_refused(monkeypatch):
    """Two laws that mean different things by one name, and a law that takes the name of a parameter of the solver."""
    declared = materials.CONSTANTS[gent.law]
    box = Box((0.0,) * 3, (0.1,) * 3)
    bodies = [
        SoftBody("a", box, Material(1e4, law="ogden", constants={"exponent": 2.0})),
        SoftBody("b", Box((0.2,) * 3, (0.3,) * 3), Material(1e4, law="gent", constants={"exponent": 30.0})),
    ]
    monkeypatch.setitem(materials.CONSTANTS, gent.law, (dataclasses.replace(declared[0], name="exponent"),))
    with pytest.raises(
        SceneError, match=r"laws 'ogden' and 'gent' both have a constant 'exponent', in \(0\.1, inf\) and"
    ):
        Simulation(Scene(bodies), SOLVERS["mpm"](0.05), 1e-3, None)
    monkeypatch.setitem(materials.CONSTANTS, gent.law, (dataclasses.replace(declared[0], name="density"),))
    bodies = [SoftBody("b", box, Material(1e4, law="gent", constants={"density": 30.0}))]
    with pytest.raises(
        SceneError, match="law 'gent' has a constant 'density', which is the name of a parameter of MPM"
    ):
        Simulation(Scene(bodies), SOLVERS["mpm"](0.05), 1e-3, None)


@pytest.mark.parametrize("solver", ["mpm", "projective"])
def test_constants_are_in_the_range_of_their_law_in_every_rollout(solver):
    sim, _ = stretched("ogden", solver, 3)
    assert sim.parameters()["second_share"].unit == "1"
    with pytest.raises(ValueError, match=r"parameter 'second_share' must be in \[0, 1\), got 1\.5"):
        sim.rollout(None, 1, second_share=1.5)


@pytest.mark.parametrize("solver", ["mpm", "projective"])
def test_new_constants_are_in_the_records_of_the_scene(solver):
    """Uniform ones become constants of materials, others a field; both come back, and the table shows the former."""
    sim, _ = stretched("ogden", solver, 3)
    scene = sim.scene_with(exponent=2.5)
    assert scene.bodies[0].material.constants == LAW_CASES["ogden"].constants | {"exponent": 2.5}
    assert not scene.fields
    assert "exponent 2.5" in str(scene)
    assert (Simulation(scene, sim.solver, sim.dt, None).parameter("exponent") == 2.5).all()
    varied = sim.parameter("exponent") * torch.linspace(0.9, 1.1, sim.parameter("exponent").shape[1])
    scene = sim.scene_with(exponent=varied)
    assert [field.name for field in scene.fields] == ["exponent"]
    assert torch.equal(Simulation(scene, sim.solver, sim.dt, None).parameter("exponent"), varied)


@pytest.mark.parametrize("solver", ["mpm", "projective"])
def test_matter_beyond_the_range_of_its_law_is_reported(solver):
    """A Gent block of J_m = 0.3 that is stretched to I_1 - 3 near 1: its formula alone would have a finite stress."""
    law, most = "gent", 0.3
    sim, start = stretched(law, solver, 3)
    words = r"'block'.*law 'gent' with locking_invariant 0\.3"
    scene = sim.scene_with(locking_invariant=most)
    with pytest.raises(SimulationError, match=words):
        Simulation(scene, sim.solver, sim.dt, None).rollout(None, 2, sim.state(**start))
    assert np.isnan(evaluate(law, 0, deformation_of(3)[None], constants={"locking_invariant": most}).stress).all()


def yeoh(arguments: int, count: int):
    """A definition whose three functions take `arguments` arguments, the last of them a vector of `count` numbers."""
    vec = wp.types.vector(count, real)

    def law(dim):
        mat = matrix(dim)

        @wp.func
        def of_three(F: mat, mu: real, lam: real):
            return F

        @wp.func
        def of_four(F: mat, mu: real, lam: real, c: vec):
            return F

        return ((of_three, of_four)[arguments - 3],) * 3

    return law


ONE = materials.LawConstant("second_coefficient", "k", "1", "Yeoh's ratio", default=0.1)


@pytest.mark.parametrize("solver", ["mpm", "projective"])
@pytest.mark.parametrize(
    ("definition", "declared", "words"),
    [
        (yeoh(3, 1), [ONE], r"its energy Psi must take \(F: .*, mu: .*, lam: .*, c: vec1[fd]\), it takes \("
         r"F: .*, lam: float\d\d\); c holds the constants in with_constants, second_coefficient$"),
        (yeoh(4, 2), [ONE], r"c: vec1[fd]\), it takes \(.*c: vec2[fd]\); c holds"),
        (yeoh(4, 1), [], r"it takes \(.*c: vec1[fd]\); an argument c needs constants declared by with_constants$"),
        (lambda dim: yeoh(3, 1)(dim)[:2], [], r"must return three Warp functions: energy Psi, Kirchhoff stress tau, .*"),
        (lambda dim: None, [], r"must return three Warp functions: .* got None"),
    ],
    ids=["no c", "c too long", "undeclared c", "two functions", "nothing"],
)  # fmt: skip
def test_a_law_of_another_form_is_refused_before_anything_runs(solver, definition, declared, words, monkeypatch):
    monkeypatch.setitem(materials.LAWS, "yeoh", definition)
    monkeypatch.setitem(CONSTANTS, definition, tuple(declared))
    body = SoftBody("finger", Box((0.0,) * 3, (0.2,) * 3), Material(1e4, law="yeoh"))
    with pytest.raises(SceneError, match=f"^SoftBody 'finger': law 'yeoh'.*{words}"):
        SOLVERS[solver](0.1).build(Scene([body], domain=((0.0,) * 3, (1.0,) * 3)))
