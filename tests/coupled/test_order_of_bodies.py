"""Rigid and soft bodies in any order in a scene."""

import numpy as np
import pytest

import warpbots as wb

BALL = wb.RigidBody("ball", wb.shapes.Sphere((0.1, 0.1, 0.25), 0.04), 500.0, color=(1.0, 0.0, 0.0))
SLAB = wb.SoftBody("slab", wb.shapes.Box((0, 0, 0.01), (0.2, 0.2, 0.1)), wb.Material(1e5), color=(0.0, 0.0, 1.0))


@pytest.mark.parametrize("solver", [wb.MPM(0.05), wb.MassSpring(0.05)], ids=["mpm", "springs"])
def test_pictures_and_points_are_the_same_in_any_order(solver):
    """A rigid body before a soft one shifted the bodies of the points: pictures took the colour of another body."""
    found = []
    for bodies in ((SLAB, BALL), (BALL, SLAB)):
        scene = wb.Scene(bodies, joints=[wb.Joint("ball", "free", None, "ball")])
        sim = wb.Simulation(scene, wb.Coupled(solver, wb.Articulated()), 1e-3)
        assert {scene.bodies[i].name for i in sim.model.matter.body} == {"slab"}
        found.append(np.asarray(wb.view.film_strip(sim.rollout(None, 1), 2)))
    assert np.array_equal(*found)
