"""The law registered last under a name runs in every simulation built afterwards; no law is dropped."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from cases import SOLVERS

import warpbots as wb
from warpbots.actuation_laws import proportional, stress_law
from warpbots.materials import DIFFERENTIALS, LAWS, differential, elasticity, linear, neo_hookean
from warpbots.scene import SceneError

BOX = wb.shapes.Box((0.25, 0.25, 0.25), (0.5, 0.5, 0.5))


@pytest.fixture
def registered():
    """A name of a law that is free again afterwards."""
    yield "defined_in_a_notebook"
    LAWS.pop("defined_in_a_notebook", None)


def softer(factor: float):
    """A new law: the linear one, with stresses that are `factor` times its own."""

    def law(dim: int):
        energy_of, stress_of, piola_of = linear.law(dim)
        real, mat = wb.numerics.real, wb.numerics.matrix(dim)
        scale = wp.constant(real(factor))

        @wp.func
        def energy(F: mat, mu: real, lam: real):
            return scale * energy_of(F, mu, lam)

        @wp.func
        def stress(F: mat, mu: real, lam: real):
            return scale * stress_of(F, mu, lam)

        @wp.func
        def piola(F: mat, mu: real, lam: real):
            return scale * piola_of(F, mu, lam)

        return energy, stress, piola

    return law


def stretched(law: str, name: str) -> wb.Simulation:
    body = wb.SoftBody("b", BOX, wb.Material(1e4, 0.3, 1000.0, law))
    return wb.Simulation(wb.Scene([body], gravity=(0, 0, 0)), SOLVERS[name](1 / 8), 1e-3, None)


def pull(sim: wb.Simulation) -> np.ndarray:
    """Change of velocity of a body that is stretched by a tenth, in one interval."""
    rest = sim.state()
    x = rest.position * torch.tensor([1.1, 1.0, 1.0], dtype=rest.position.dtype)
    given = {"position": x}
    if isinstance(sim.solver, wb.MPM):
        F = torch.diag(torch.tensor([1.1, 1.0, 1.0], dtype=x.dtype))
        given["deformation"] = F.expand(rest.deformation.shape)
    return sim.step(sim.state(**given), torch.zeros(1, 0)).velocity[0].double().numpy()


@pytest.mark.filterwarnings("ignore:law 'defined_in_a_notebook'. its stiffness at rest does not")
@pytest.mark.parametrize("name", ["mpm", "projective"])
def test_a_law_that_is_defined_again_runs_in_new_simulations_and_the_old_one_in_old_ones(name, registered):
    LAWS[registered] = softer(1.0)
    first = stretched(registered, name)
    before = pull(first)
    LAWS[registered] = softer(0.5)
    second = pull(stretched(registered, name))
    same = pull(stretched("linear", name))
    scale = np.abs(same).max()
    np.testing.assert_allclose(before, same, rtol=0, atol=1e-4 * scale)
    np.testing.assert_array_equal(pull(first), before)
    assert 0.4 < np.abs(second).max() / scale < 0.7
    LAWS[registered] = LAWS["linear"]  # back to one that there was
    np.testing.assert_array_equal(pull(stretched(registered, name)), same)


def test_laws_by_name_are_those_registered_last(registered):
    LAWS[registered] = neo_hookean.law
    first, slope = elasticity(registered, 0, 3), differential(registered, 2, 3)
    LAWS[registered] = linear.law
    assert elasticity(registered, 0, 3) is not first
    assert differential(registered, 2, 3) is not slope
    LAWS[registered] = neo_hookean.law
    assert elasticity(registered, 0, 3) is first


def test_a_differential_that_is_registered_later_is_used(registered):
    LAWS[registered] = law = softer(2.0)
    generated = differential(registered, 0, 3)
    assert generated[0].cls.__name__ == "GeneratedPoint"
    DIFFERENTIALS[law] = linear.differential
    assert differential(registered, 0, 3)[0].cls.__name__ != "GeneratedPoint"


@dataclasses.dataclass(frozen=True)
class Shear(wb.actuators.StressActuator):
    """A stress actuator as a notebook defines it: shear in the plane of x and z."""

    max_stress: float


@dataclasses.dataclass(frozen=True)
class Unknown(wb.actuators.StressActuator):
    """A stress actuator without a registered stress."""


@stress_law.register
def _(actuator: Shear, dim: int):
    S = np.zeros((dim, dim))
    S[0, -1] = S[-1, 0] = actuator.max_stress
    return proportional, S


def driven(actuator, name: str) -> wb.Simulation:
    body = wb.SoftBody("b", BOX, wb.Material(1e4, 0.3, 1000.0), {"all": BOX})
    return wb.Simulation(wb.Scene([body], [actuator], gravity=(0, 0, 0)), SOLVERS[name](1 / 8), 1e-3, None)


@pytest.mark.parametrize("name", ["mpm", "springs", "projective"])
def test_a_stress_actuator_of_a_notebook_acts_under_every_solver(name):
    """The shear of the mean deformation grows by the same rate as that of the muscle pair with the same stress."""
    s, c = 2e3, np.sqrt(0.5)
    region = "all"
    pair = [
        wb.actuators.Muscle("p", region, (c, 0, c), s),
        wb.actuators.Muscle("m", region, (c, 0, -c), s),
    ]  # their difference is the shear
    body = wb.SoftBody("b", BOX, wb.Material(1e4, 0.3, 1000.0), {"all": BOX})
    both = wb.Simulation(wb.Scene([body], pair, gravity=(0, 0, 0)), SOLVERS[name](1 / 8), 1e-3, None)
    expected = both.step(both.state(), torch.tensor([[1.0, -1.0]])).velocity
    sim = driven(Shear("t", region, s), name)
    found = sim.step(sim.state(), torch.ones(1, 1)).velocity
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=0, atol=float(2e-3 * expected.abs().max()))


@pytest.mark.parametrize("name", ["mpm", "springs", "projective"])
def test_an_actuator_that_a_solver_does_not_know_is_refused(name):
    with pytest.raises(SceneError, match="Unknown 'u': .* has no such actuator; use one of Pressure, Muscle"):
        driven(Unknown("u", "all"), name)


def test_an_actuator_without_a_row_of_its_own_is_not_lost_in_a_file(tmp_path):
    with pytest.raises((SceneError, TypeError), match="Shear"):
        wb.usd.write(tmp_path / "shear.usda", driven(Shear("t", "all", 1.0), "mpm").scene)
    assert not list(tmp_path.iterdir())
