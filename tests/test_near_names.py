"""An unknown argument is answered with the arguments that there are, and with the one that was probably meant."""

import inspect

import pytest

import warpbots as wb

BOX = wb.shapes.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wb.Material(E=1e5), r"Material\(\) .* 'E'; it takes youngs_modulus, .*; did you mean 'youngs_modulus'\?"),
        (lambda: wb.Material(1e5, nu=0.3), "did you mean 'poissons_ratio'"),
        (lambda: wb.MPM(cell_size=0.1), r"MPM\(\) .*; it takes dx, particles_per_cell; did you mean 'dx'"),
        (lambda: wb.ProjectiveDynamics(dx=0.1), "did you mean 'cell_size'"),
        (lambda: wb.RigidBody("a", BOX, mass=1.0), "did you mean 'inertia'"),
        (lambda: wb.Scene(bodes=[]), "did you mean 'bodies'"),
        (lambda: wb.Simulation(None, wb.MPM(0.1), time_step=1e-3), r"Simulation\(\) .*; did you mean 'dt'"),
        (lambda: wb.minimize(None, None, itertions=3), r"minimize\(\) .*; did you mean 'iterations'"),
        (lambda: wb.Scene(qqq=1), r"Scene\(\) got an unexpected keyword argument 'qqq'; it takes bodies, .*source$"),
        (lambda: wb.Material(), r"Material.__init__\(\) missing 1 required positional argument: 'youngs_modulus'"),
    ],
)  # fmt: skip
def test_unknown_arguments(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_signatures_stay():
    """As in ``help``: without types, which would fill a page."""
    assert str(inspect.signature(wb.MPM.__init__)).startswith("(self, dx: float | None = None")
    assert str(inspect.signature(wb.Material)).startswith("(youngs_modulus, poissons_ratio=0.3, density=1000.0")
