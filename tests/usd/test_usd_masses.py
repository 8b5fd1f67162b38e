"""Masses of rigid bodies in files: given, from densities, and by default."""

import numpy as np
import pytest
from rigid_prims import cube, joint, mass, notes, read
from usd_cases import prim

from warpbots.scene import (
    Inertia,
)


def test_masses(tmp_path):
    cubic, moment = 0.008, 0.008 * 0.04 / 6
    assert mass(tmp_path).mass == pytest.approx(1000 * cubic)
    assert mass(tmp_path, "float physics:mass = 0\n float physics:density = 0\n").mass == pytest.approx(1000 * cubic)
    assert mass(tmp_path, "float physics:density = 500\n").mass == pytest.approx(500 * cubic)
    assert mass(
        tmp_path, "float physics:density = 500\n", collider="float physics:density = 300\n"
    ).mass == pytest.approx(300 * cubic)
    assert mass(tmp_path, collider="float physics:mass = 5\n").mass == pytest.approx(5)
    steel = prim("Material", "Steel", "PhysicsMaterialAPI", text="float physics:density = 7800\n")
    assert mass(tmp_path, collider="rel material:binding:physics = </Steel>\n", more=steel).mass == pytest.approx(
        7800 * cubic
    )
    found = mass(tmp_path, "float physics:mass = 4\n")
    np.testing.assert_allclose(found.moments, np.eye(3) * 4 / cubic * moment)
    found = mass(tmp_path, "float physics:mass = 4\n point3f physics:centerOfMass = (0, 0, 0.1)\n")
    np.testing.assert_allclose(found.center, (0, 0, 0.1))
    turned = "quatf physics:principalAxes = (0.70710678, 0, 0, 0.70710678)\n"
    found = mass(tmp_path, "float physics:mass = 4\n float3 physics:diagonalInertia = (1, 2, 2.5)\n" + turned)
    np.testing.assert_allclose(found.moments, np.diag([2, 1, 2.5]), atol=1e-7)


def test_masses_that_nothing_says(tmp_path, heard):
    bare = prim("Xform", "Bare", "PhysicsRigidBodyAPI")
    (body,) = read(tmp_path, bare).rigid
    assert body.inertia == Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.004, 0.004))
    assert "ball of 1 kg" in notes(heard)["/Bare"]
    carrier = prim("Xform", "Base", "PhysicsRigidBodyAPI")
    scene = read(
        tmp_path, carrier, cube("Arm"), joint("PhysicsRevoluteJoint"), joint("PhysicsFixedJoint", "Hold", None, "/Base")
    )
    assert scene.rigid[0].inertia is None  # it carries what has mass
