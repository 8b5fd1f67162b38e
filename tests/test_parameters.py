"""Parameters: declared once, by the fields of models and of matter, from which all else follows."""

import math
import re
from typing import Generic

import numpy as np
import pytest

import warpbots as wb
from warpbots.numerics.parameters import NOT_NEGATIVE, POSITIVE, Parameter, parameter, parameters_of, parametric, shared
from warpbots.scene import Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers.array_fields import Array

HEAT = Parameter("W/K", 0.0, math.inf, "element", "heat conductance", intensive=True)


@parametric
class Constants(Generic[Array]):
    """Constants of rods and joints."""

    heat: Array = shared(HEAT, "rod", meaning="heat conductance; of both ends")
    slack: Array = parameter("m", NOT_NEGATIVE, "body", "slack of a joint", neutral=0.0, entry="vector")


@parametric
class Rods(Constants[np.ndarray]):
    """Rods at rest."""


@parametric
class Model(Constants[list]):
    """Rods as arrays.

    Attributes:
        worlds: Number of copies.
    """

    worlds: int
    gain: list = parameter("1", POSITIVE, "mass", "gain", axes="n_masses, 3")


def test_a_declaration_holds_unit_range_element_and_text():
    found = parameters_of(Model)
    assert list(found) == ["heat", "slack", "gain"]
    assert found["heat"] == Parameter(
        "W/K", 0.0, math.inf, "rod", "heat conductance", intensive=True, meaning="heat conductance; of both ends"
    )
    assert (found["slack"].lower, found["slack"].inclusive, found["slack"].neutral) == (0.0, True, 0.0)
    assert not found["gain"].inclusive
    assert HEAT.per == "element"  # a field does not change what it refers to
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'gain'"):
        Model([], [], 1)
    with pytest.raises(AttributeError):  # frozen
        Model([], [], 1, []).gain = [1.0]


def test_docstrings_list_declared_parameters_with_unit_and_shape():
    """With an axis for the worlds where a class has worlds."""
    assert Model.__doc__.endswith(
        """
Attributes:
    worlds: Number of copies.
    heat: Heat conductance [W/K], shape (worlds, n_rods); of both ends.
    slack: Slack of a joint [m], shape (worlds, n_bodies), vector.
    gain: Gain [1], shape (worlds, n_masses, 3).
"""
    )
    assert "    heat: Heat conductance [W/K], shape (n_rods,); of both ends.\n" in Rods.__doc__
    assert "    slack: Slack of a joint [m], shape (n_bodies, dim).\n" in Rods.__doc__


def test_the_array_of_a_stiffness_is_what_the_kernel_reads():
    """From the record of a region to the array E of the struct of the kernels, in both worlds."""
    box = wb.shapes.Box((0.0, 0.0), (0.4, 0.2))
    tip = wb.shapes.Box((0.2, 0.0), (0.4, 0.2))
    body = SoftBody("bar", box, Material(3e4), regions={"tip": tip}, region_materials={"tip": Material(7e4)})
    sim = Simulation(Scene([body]), wb.MPM(0.1), 1e-3, worlds=2)
    model = sim.model
    expected = np.where(model.matter.position[:, 0] > 0.2, 7e4, 3e4)
    np.testing.assert_array_equal(model.matter.youngs_modulus, expected)
    np.testing.assert_array_equal(model.youngs_modulus.numpy(), np.stack([expected, expected]))
    assert model.material.E.ptr == model.youngs_modulus.ptr
    with pytest.raises(ValueError, match=re.escape("'youngs_modulus' must be in (0, inf) Pa, got -1")):
        sim.rollout(None, 1, youngs_modulus=-1.0)
