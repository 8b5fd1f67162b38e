"""Stress actuators with any law: the recipe of CONTRIBUTING, dielectric elastomers in closed form, gradients, faults."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from cases import ACTUATORS, assert_gradients, block, is_proportional, lame
from scipy.optimize import fsolve

import warpbots as wb
from warpbots.actuation_laws import active_laws, contraction, stress_law, without_energy
from warpbots.actuators import DielectricElastomer, Muscle, Pressure, StressActuator
from warpbots.numerics import matrix, precision, real, vector
from warpbots.scene import SceneError
from warpbots.scene.record import record
from warpbots.usd.stage import schema_rows
from warpbots.usd.stage.schema import OWN, TABLE, Row, declare

VACUUM = 8.8541878128e-12
TIGHT = {"float32": None, "float64": 1e-11}[precision]
SOLVERS = {
    "mpm": lambda dx: wb.MPM(dx),
    "tetrahedra": lambda dx: wb.ProjectiveDynamics(dx, tolerance=TIGHT, collisions=False),
    "hexahedra": lambda dx: wb.ProjectiveDynamics(dx, tolerance=TIGHT, collisions=False, elements="hexahedra"),
}


# the recipe of CONTRIBUTING, as a cell of a notebook
@record
class PumpedPores(StressActuator):
    """A fluid in pores whose pressure is quadratic in the voltage of its pump.

    Attributes:
        name: Its name.
        region: Its region.
        pressure: Pressure at u = 1 [Pa].
    """

    pressure: float


def pumped(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, p: real):
        """-u^2 p I."""
        return -u * u * p * wp.identity(n=dim, dtype=real)

    return stress


@stress_law.register
def _(actuator: PumpedPores, dim: int):
    return pumped, actuator.pressure


@record
class Sarcomere(StressActuator):
    """A muscle whose stress falls to both sides of its optimal stretch.

    Attributes:
        name: Its name.
        region: Its region.
        stress: Stress at u = 1 and the optimal stretch [Pa].
        stretch: Optimal stretch [1].
        width: Stretch by which the stress falls to exp(-1) [1].
    """

    stress: float
    stretch: float
    width: float


def gaussian(dim):
    mat, numbers = matrix(dim), vector(3)

    @wp.func
    def stress(F: mat, u: real, c: numbers):
        """u s exp(-((l - l_0) / w)^2) e e^T, with the stretch l = |F e| along e, the first axis."""
        S = mat()
        length = real(0.0)
        for i in range(dim):
            length += F[i, 0] * F[i, 0]
        z = (wp.sqrt(length) - c[1]) / c[2]
        S[0, 0] = u * c[0] * wp.exp(-z * z)
        return S

    return stress


@stress_law.register
def _(actuator: Sarcomere, dim: int):
    return gaussian, (actuator.stress, actuator.stretch, actuator.width)


@record
class Crosswise(StressActuator):
    """A tension along the first axis that grows with the stretch along the second: it has no energy.

    Attributes:
        name: Its name.
        region: Its region.
        stress: Stress at u = 1 [Pa].
    """

    stress: float


def crosswise(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, s: real):
        """u s (C_22 - 1) e e^T."""
        S = mat()
        S[0, 0] = u * s * (F[0, 1] * F[0, 1] + F[1, 1] * F[1, 1] - real(0.5))
        return S

    return stress


@stress_law.register
def _(actuator: Crosswise, dim: int):
    return crosswise, actuator.stress


def field(direction, share, E=1e4, nu=0.3) -> DielectricElastomer:
    """A dielectric whose eps |E|^2 at u = 1 is a share of the shear modulus."""
    modulus = lame(E, nu)[0]
    return DielectricElastomer("field", "root", direction, np.sqrt(share * modulus / (VACUUM * 4.7)), 4.7)


CASES = {
    name: make
    for name, make in ACTUATORS.items()
    if isinstance(make(3), StressActuator) and not is_proportional(make(3))
} | {
    "hydraulic": lambda dim: PumpedPores("hydraulic", "root", 600.0),
    "sarcomere": lambda dim: Sarcomere("sarcomere", "root", 900.0, 1.05, 0.3),
    "crosswise": lambda dim: Crosswise("crosswise", "root", 500.0),
}


@pytest.mark.verification
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("solver", "dim"), [("mpm", 2), ("mpm", 3), ("tetrahedra", 3), ("hexahedra", 3)])
def test_gradients(solver, dim, case, rng):
    """With respect to state, control, stiffness and all else, beside a muscle in the same matter."""
    muscle = Muscle("muscle", "root", (0.2, 1.0, -0.5)[:dim], 300.0)
    scene = block(dim, actuators=(CASES[case](dim), muscle), gravity=(0.0,) * dim)
    steps = {"dt": 2e-3} if solver != "mpm" else {"dt": 2e-3, "substeps": 2}
    assert_gradients(wb.Simulation(scene, SOLVERS[solver](1 / 8), **steps), rng)


@pytest.mark.verification
@pytest.mark.parametrize("name", ["mpm", "tetrahedra"])
def test_the_taylor_remainder_of_a_quadratic_control_is_of_second_order(name):
    """|L(u + h d) - L(u) - h L'd| falls by 100 with h, and at u = 0 the gradient is zero."""
    scene = block(3, actuators=(CASES["dielectric"](3),), gravity=(0.0,) * 3)
    sim = wb.Simulation(scene, SOLVERS[name](1 / 8), 5e-3, substeps=None if name == "mpm" else 1)

    def loss(u):
        x = sim.rollout(u.reshape(1, 1).expand(5, 1), 5).final.position
        return (x[..., 0] * x[..., 0]).sum()

    u = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    value = loss(u)
    (slope,) = torch.autograd.grad(value, u)
    remainders = [abs(float(loss(u.detach() + h) - value.detach() - h * slope)) for h in (0.2, 0.02)]
    assert slope.abs() > 1e-6
    assert remainders[0] / remainders[1] == pytest.approx(100.0, rel=0.2)
    rest = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    assert abs(float(torch.autograd.grad(loss(rest), rest)[0])) < 1e-9 * float(slope.abs())


def free(actuator, E, nu, law="neo_hookean", damping=0.0) -> wb.Scene:
    """A plate that nothing holds, all of which is driven."""
    box = wb.shapes.Box((0, 0, 0), (0.16, 0.16, 0.08))
    body = wb.SoftBody("plate", box, wb.Material(E, nu, 1000.0, law, damping=damping), {"root": box})
    return wb.Scene([body], [actuator], gravity=(0.0, 0.0, 0.0), domain=((-0.2,) * 3, (0.4,) * 3))


def stretches(share, E, nu):
    """Stretches across and along the field with no stress in total: neo-Hookean, with the ideal dielectric, by scipy.

    Psi = mu/2 (I_1 - 3) - mu ln J + lambda/2 (ln J)^2, tau_i = mu (l_i^2 - 1) + lambda ln J, plus J eps E^2 (n n^T -
    1/2), with E = E_0 / l_z and eps E_0^2 = share mu.
    """
    mu, lam = lame(E, nu)

    def balance(l):
        across, along = l
        J = across * across * along
        maxwell = J * share * mu / along**2
        elastic = [mu * (k * k - 1) + lam * np.log(J) for k in l]
        return [elastic[0] - 0.5 * maxwell, elastic[1] + 0.5 * maxwell]

    found, _, status, _ = fsolve(balance, (1.01, 0.99), full_output=True, xtol=1e-13)
    assert status == 1
    return found


def extent(sim, u) -> np.ndarray:
    """Extents at equilibrium over extents at rest: across and along the field."""
    x = sim.equilibrium(torch.tensor([u], dtype=torch.float64)).position[0].numpy()
    ratio = np.ptp(x, axis=0) / np.ptp(sim.model.matter.position, axis=0)
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-6)
    return ratio[[0, 2]]


@pytest.mark.verification
@pytest.mark.parametrize(("elements", "u"), [("tetrahedra", 0.6), ("tetrahedra", -1.0), ("hexahedra", 1.0)])
def test_a_free_plate_thins_as_far_as_the_field_and_elasticity_balance(elements, u):
    """At u = 1 at 0.4 of the shear modulus: a stretch of 1.13 across, four fifths of the way to pull-in at 1.26."""
    E, nu, share = 1e5, 0.45, 0.4
    sim = wb.Simulation(free(field((0, 0, 1), share, E, nu), E, nu), SOLVERS[elements](0.08), 0.1)
    expected = stretches(share * u * u, E, nu)
    np.testing.assert_allclose(extent(sim, u), expected, rtol=1e-6)
    assert u > -1.0 or 1.1 < expected[0] < 1.26


@pytest.mark.verification
def test_a_small_voltage_compresses_as_pelrine_s_pressure():
    """s_z = -p / Y with p = eps E^2 for incompressible matter: (1 + 2 nu) / 2 of it at Poisson's ratio nu."""
    E, nu, share = 1e5, 0.49, 1e-4
    sim = wb.Simulation(free(field((0, 0, 1), share, E, nu), E, nu), SOLVERS["tetrahedra"](0.08), 0.1)
    p = share * lame(E, nu)[0]
    across, along = extent(sim, 1.0) - 1.0
    assert along == pytest.approx(-p / E * (0.5 + nu), rel=1e-3) == pytest.approx(-p / E, rel=0.02)
    assert across == pytest.approx(p / (2.0 * E), rel=0.02)


@pytest.mark.verification
def test_particles_thin_as_far_as_the_field_and_elasticity_balance():
    """Mean strain of the particles once damping has taken the motion out; surfaces of MPM are soft by a few per cent."""
    E, nu, share = 1e4, 0.3, 0.3
    scene = free(field((0, 0, 1), share, E, nu), E, nu, damping=0.02)
    sim = wb.Simulation(scene, wb.MPM(0.04), 0.05, None)
    end = sim.rollout(torch.ones(8, 1), 8).final
    F = end.deformation[0].numpy().mean(axis=0)
    np.testing.assert_allclose(F[[0, 2], [0, 2]], stretches(share, E, nu), rtol=2e-3)
    readings = sim.sense(end, torch.ones(1, 1))
    assert np.abs(readings.stress[0].numpy().mean(axis=0)).max() < 0.02 * share * lame(E, nu)[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_quadratic_actuator_of_a_cell_acts_as_a_pressure_of_u_squared(name):
    """At u = -0.6 as `Pressure` at 0.36."""
    ends = []
    for actuator, u in ((PumpedPores("a", "root", 2e3), -0.6), (Pressure("a", "root", 2e3), 0.36)):
        scene = block(3, actuators=(actuator,), gravity=(0.0,) * 3)
        sim = wb.Simulation(scene, SOLVERS[name](1 / 8), 5e-3, None if name == "mpm" else 1)
        ends.append(sim.rollout(torch.full((2, 1), u), 2).final.position)
    moved = (ends[1] - sim.state().position).abs().max()
    assert moved > 1e-5
    torch.testing.assert_close(ends[0], ends[1], rtol=0.0, atol=float(2e-4 * moved))


@pytest.mark.verification
@pytest.mark.parametrize("u", [0.5, 1.0])
def test_a_muscle_with_a_stress_of_its_stretch_contracts_to_the_balance(u):
    """tau = 0 in all directions for neo-Hookean matter and s(l) l^2 along the muscle."""
    E, nu = 1e5, 0.3
    mu, lam = lame(E, nu)
    muscle = Sarcomere("m", "root", 4e4, 1.1, 0.4)

    def balance(l):
        along, across = l
        log = np.log(along * across * across)
        active = u * muscle.stress * np.exp(-(((along - muscle.stretch) / muscle.width) ** 2)) * along**2
        return [mu * (along**2 - 1) + lam * log + active, mu * (across**2 - 1) + lam * log]

    sim = wb.Simulation(free(muscle, E, nu), SOLVERS["tetrahedra"](0.08), 0.1)
    x = sim.equilibrium(torch.tensor([u], dtype=torch.float64)).position[0].numpy()
    ratio = np.ptp(x, axis=0) / np.ptp(sim.model.matter.position, axis=0)
    expected = fsolve(balance, (0.9, 1.0), xtol=1e-13)
    assert expected[0] < 0.95
    np.testing.assert_allclose(ratio[[0, 1]], expected, rtol=1e-6)


def test_laws_without_an_energy_are_found():
    scene = block(3, actuators=tuple(make(3) for make in CASES.values()))
    found = {a.name for a in without_energy(scene)}
    assert found & {"dielectric", "hydraulic", "sarcomere", "crosswise"} == {"crosswise"}
    with pytest.raises(SceneError, match="Crosswise 'crosswise', which derives from no energy, makes .* unsymmetric"):
        wb.ProjectiveDynamics(1 / 8, linear_solver="direct").build(block(3, actuators=(CASES["crosswise"](3),)))


def test_springs_refuse_what_is_not_proportional():
    with pytest.raises(SceneError, match="DielectricElastomer 'dielectric': .* use MPM or ProjectiveDynamics"):
        wb.MassSpring(0.05).build(block(3, actuators=(CASES["dielectric"](3),)))


def test_pressures_and_muscles_share_their_kernels():
    """Only other laws make kernels of their own."""
    both = active_laws((Pressure("p", "root", 1.0), Muscle("m", "root", (1, 0, 0), 1.0)), 3)
    assert both == active_laws((), 3)
    laws = {stress_law(make(3), 3)[0] for make in CASES.values()}
    assert len(active_laws([make(3) for make in CASES.values()], 3)) == 1 + len(laws) > 4


@pytest.mark.parametrize("dim", [2, 3])
def test_a_file_keeps_every_actuator(dim, tmp_path):
    scene = block(dim, actuators=tuple(make(dim) for make in ACTUATORS.values()))
    wb.usd.write(tmp_path / "a.usda", scene)
    assert wb.usd.read(tmp_path / "a.usda").actuators == scene.actuators


def test_a_file_keeps_an_actuator_of_a_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(schema_rows, "TABLE", [*TABLE])
    monkeypatch.setattr(schema_rows, "_ROWS", {**schema_rows._ROWS})
    row = Row("PumpedPores.pressure", "warpbots:pressure", "double", "number", "Pa", "WarpbotsPumpedPoresAPI", OWN)
    declare("stage.actuators_and_loads", row)
    scene = block(3, actuators=(PumpedPores("h", "root", 1e3 / 3.0),))
    wb.usd.write(tmp_path / "a.usda", scene)
    assert wb.usd.read(tmp_path / "a.usda").actuators == scene.actuators


def test_contraction_follows_the_signal_unless_registered():
    assert contraction(CASES["dielectric"](3), -0.5) == 0.25
    assert contraction(CASES["sarcomere"](3), -0.5) == -0.5
    assert contraction(Pressure("p", "root", 1.0), 0.5) == -0.5


@dataclasses.dataclass(frozen=True)
class Wrong(StressActuator):
    """A stress actuator whose law is wrong.

    Attributes:
        name: Its name.
        region: Its region.
        law: Its law.
    """

    law: object


@stress_law.register
def _(actuator: Wrong, dim: int):
    return actuator.law, 1.0


def skew(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, c: real):
        S = mat()
        S[0, 1] = u * c
        return S

    return stress


def looped(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, c: real):
        """u^5 by a loop that Warp does not replay."""
        power = u
        for _ in range(4):
            power = power * u
        return c * (real(1.0) + power + F[0, 0] * u) * wp.identity(n=dim, dtype=real)

    return stress


def infinite(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, c: real):
        return c / (u - u) * wp.identity(n=dim, dtype=real)

    return stress


@pytest.mark.parametrize(
    ("law", "message"), [(skew, "must be a symmetric matrix"), (looped, "other derivatives"), (infinite, "finite")]
)
def test_a_wrong_law_is_refused_before_anything_runs(law, message):
    scene = block(2, actuators=(Wrong("wrong", "root", law),))
    with pytest.raises(SceneError, match=f"Wrong 'wrong': its stress .*{message}"):
        wb.MPM(1 / 8).build(scene)


def no_constants(dim):
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real):
        return u * wp.identity(n=dim, dtype=real)

    return stress


def three_constants(dim):
    mat, numbers = matrix(dim), vector(3)

    @wp.func
    def stress(F: mat, u: real, c: numbers):
        return u * c[2] * wp.identity(n=dim, dtype=real)

    return stress


def not_warp(dim):
    return lambda F, u, c: u * c * F


@pytest.mark.parametrize("solver", [wb.MPM, wb.ProjectiveDynamics, wb.MassSpring], ids=lambda s: s.__name__)
@pytest.mark.parametrize(
    ("law", "message"),
    [
        (pumped(3), r"the function of the dimension .*, `law, c` instead of `law\(dim\), c`, got <Function"),
        (no_constants, r"c of the shape \(\), and its Warp function must take \(F: .*, u: .*, c: float.*takes \(F"),
        (three_constants, r"c of the shape \(\), and its Warp function must take .* it takes \(.*c: vec3[fd]\)"),
        (not_warp, r"its Warp function must be a Warp function \(@wp.func\), got <function"),
        (3.0, r"the function of the dimension that makes the Warp function, .* got 3.0"),
    ],
    ids=["made", "no constants", "three constants", "not a Warp function", "number"],
)
def test_a_law_of_another_form_is_refused_before_anything_runs(solver, law, message):
    scene = block(3, actuators=(Wrong("wrong", "root", law),))
    with pytest.raises(SceneError, match=f"^Wrong 'wrong': its function registered with stress_law .*{message}"):
        solver(1 / 8).build(scene)


def test_a_law_without_its_constants_is_refused_before_anything_runs():
    @stress_law.register
    def _(actuator: Bare, dim: int):
        return pumped

    with pytest.raises(SceneError, match=r"^Bare 'b': .* must return a law and its constants, `law, c`, got <function"):
        wb.MPM(1 / 8).build(block(3, actuators=(Bare("b", "root"),)))


class Bare(StressActuator):
    """An actuator without fields of its own, which needs no decorator."""


def test_a_class_whose_fields_would_be_lost_is_refused():
    class Undecorated(StressActuator):
        pressure: float

    with pytest.raises(
        SceneError, match=r"^Undecorated: .* fields \(pressure\), but is no dataclass; write @dataclasses"
    ):
        Undecorated("u", "root", 1.0)


FAULTS = {
    "field": ((1, 0, 0), -1.0, 3.0, r"max_field must be positive \[V/m\], got -1"),
    "permittivity": ((1, 0, 0), 1e6, 0.5, r"relative_permittivity must be at least 1, the vacuum's \[1\], got 0.5"),
    "direction": ((0, 0, 0), 1e6, 3.0, "direction must not be the zero vector"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    *values, message = FAULTS[fault]
    with pytest.raises(SceneError, match=f"DielectricElastomer 'd': {message}"):
        DielectricElastomer("d", "root", *values)
