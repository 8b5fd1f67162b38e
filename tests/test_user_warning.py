"""Warnings name the line of the user's program, for every way into warpbots."""

import re
import warnings
from pathlib import Path

import pytest
import torch

import warpbots as wb

PACKAGE = Path(wb.__file__).parent


def slender() -> wb.Scene:
    """A body that coarse cells bend wrongly."""
    return wb.Scene([wb.SoftBody("finger", wb.shapes.Box((0, 0, 0), (0.2, 0.04, 0.04)), wb.Material(2e5, 0.25))])


def rebounding() -> wb.Scene:
    """A cube on a floor that is too stiff for the step."""
    cube = wb.RigidBody("cube", wb.shapes.Box((-0.05,) * 3, (0.05,) * 3), 1e3, points=8)
    free = wb.Joint("cube", "free", None, "cube", start=(0, 0, 0.2, 0, 0, 0, 1))
    return wb.Scene(
        [cube], obstacles=[wb.floor(friction=0.0)], joints=[free], contacts=[wb.Contact("cube", "floor", 1e10)]
    )


class Subclass(wb.Simulation):
    """A subclass in a program: the line is that of the call of an inherited method."""

    def __init__(self, scene):
        super().__init__(scene, wb.MassSpring(spacing=0.02), dt=1e-2)


WAYS = {
    "simulation": lambda: wb.Simulation(slender(), wb.ProjectiveDynamics(0.04), dt=1e-2),
    "build": lambda: wb.MassSpring(spacing=0.02).build(slender()),
    "subclass": lambda: Subclass(slender()),
    "caution": lambda: wb.Simulation(rebounding(), wb.Articulated(), dt=1e-2),
    "minimisation": lambda: wb.minimize(
        lambda: x.square().sum(),
        x := torch.zeros(2, requires_grad=True),
        wb.methods.Torch(lr=0.1),
        iterations=1,
        progress=False,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_warning_is_at_the_line_of_the_program(way):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        WAYS[way]()
    assert {Path(w.filename) for w in found} == {Path(__file__)}


def test_there_is_one_way_to_warn():
    """Code with its own warnings would count calls, which differ from way to way."""
    warning = [path.name for path in PACKAGE.rglob("*.py") if re.search(r"warnings\.warn\(", path.read_text())]
    assert warning == ["user_warning.py"]
