"""A lattice that Newton's method leaves in an equilibrium that a real one leaves."""

import math
import warnings

import numpy as np
import pytest

from warpbots.scene import Box, Constraint, Load, Material, Scene, SoftBody
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring import MassSpringModel, equilibrium

LENGTH, WIDTH, E = 0.4, 0.02, 1e5


def column(load: float, side: float = 0.0) -> MassSpringModel:
    """A column in the plane, clamped below, with a load on its tip downwards and a part `side` of it sideways [N/m]."""
    ends = {"root": Box((0.0, 0.0), (WIDTH, 1e-3)), "tip": Box((0.0, LENGTH - 1e-3), (WIDTH, LENGTH))}
    body = SoftBody("column", Box((0.0, 0.0), (WIDTH, LENGTH)), Material(E, 0.25, 1000.0), ends)
    loads = (Load("tip", (side * load, -load)),)
    scene = Scene((body,), gravity=(0.0, 0.0), constraints=(Constraint("root"),), loads=loads)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*cells of .* fill its thickness")
        return MassSpring(0.01).build(scene)


def bend(model: MassSpringModel, parts: int = 8) -> float:
    """How far the tip moves sideways [m]."""
    return (equilibrium(model, parts=parts) - model.lattice.position)[model.lattice.regions["tip"], 0].mean()


def test_a_column_of_springs_is_unstable_above_the_load_at_which_a_bent_one_departs():
    """By 1 %, and not 2 % below it; a load to the side and more parts lead to the bent equilibrium."""
    euler = math.pi**2 * E * WIDTH**3 / 12.0 / (2.0 * LENGTH) ** 2
    loads = euler * np.array([0.2, 0.3])
    ratio = [1e-4 * load / bend(column(load, 1e-4)) for load in loads]
    critical = loads[0] + (loads[1] - loads[0]) * ratio[0] / (ratio[0] - ratio[1])  # Southwell 1932
    assert critical == pytest.approx(1.41 * euler, rel=0.02)
    assert abs(bend(column(0.98 * critical))) < 1e-9
    with pytest.warns(UserWarning, match=r"a small push of SoftBody 'column' grows .* add a small load to the side"):
        assert abs(bend(column(1.01 * critical))) < 1e-9
    assert bend(column(2.5 * critical, side=0.02), parts=64) > 0.5 * LENGTH
