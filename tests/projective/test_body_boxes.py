"""What is searched for contacts: the parts of bodies that can come near other bodies which they may touch."""

import numpy as np
import pytest
import trimesh
from loose_bodies import GAP, SIDE, G, cube, last, simulated

import warpbots as wb
from warpbots.scene import Joint, RigidBody, Scene, TriangleMesh, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

CHAIN = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 0.2"><freejoint/><geom type="box" size="0.02 0.02 0.02" mass="0.2"/>
    <body name="b" pos="0.05 0 0"><joint type="hinge" axis="0 1 0"/>
      <geom type="sphere" size="0.01" mass="0.1"/>
      <body name="c" pos="-0.02 0 0"><joint type="hinge" axis="0 1 0"/>
        <geom type="box" size="0.02 0.01 0.01" mass="0.1"/></body></body></body>
</worldbody>{contact}</mujoco>"""
"""Three links, of which the third reaches 2 cm into the first."""


def reaches(sim: Simulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners of the reaches of the bodies of the first world after a search, shape (2, n, 3), and their boxes."""
    boxes = sim.model.workspace.contact.boxes
    corners = (boxes.reach_lower, boxes.reach_upper), (boxes.lower, boxes.upper)
    return tuple(np.stack([array.numpy() for array in pair]) for pair in corners)


def test_the_reach_of_a_body_is_where_it_can_meet_another_one():
    """Two cubes, one 20 mm aside on the other: their reach is the box between them; a third one, far away, has none."""
    cubes = cube("a", (0.0, 0.0, 0.0)), cube("b", (0.02, 0.0, SIDE + GAP)), cube("far", (1.0, 0.0, 0.0))
    sim = simulated(Scene(cubes, gravity=(0.0, 0.0, 0.0)), 0.03, 1e-3)
    last(sim, 1)
    reach, boxes = reaches(sim)
    around = 1.0 - boxes[0, 2, 0]
    assert around == pytest.approx(sim.model.pairs.clearance.numpy()[0], abs=1e-6)
    expected = [[0.02 - around, -around, SIDE + GAP - around], [SIDE + around, SIDE + around, SIDE + around]]
    for k in range(2):
        np.testing.assert_allclose(reach[:, k], expected, atol=1e-6)
    assert (reach[0, 2] > reach[1, 2]).all()


def test_neighbours_at_a_joint_reach_nothing():
    cubes = cube("a", (0.0, 0.0, 0.0)), cube("b", (0.0, 0.0, SIDE - 0.01))
    hinge = Joint("hinge", "revolute", "a", "b", axis=(0.0, 1.0, 0.0), position=(0.0, 0.0, SIDE))
    sim = simulated(Scene(cubes, joints=(hinge,), gravity=(0.0, 0.0, 0.0)), 0.03, 1e-3)
    last(sim, 1)
    reach, _ = reaches(sim)
    assert (reach[0] > reach[1]).all()


def test_links_whose_file_excludes_their_contact_may_overlap(tmp_path):
    """They move as the same links without any contact; the file without the line is refused."""
    file = tmp_path / "chain.xml"
    file.write_text(CHAIN.format(contact=""))
    with pytest.raises(wb.SceneError, match="RigidBody 'a' and RigidBody 'c': it starts up to"):
        Simulation(wb.robots.load(file), ProjectiveDynamics(0.02), 2e-3)
    file.write_text(CHAIN.format(contact='<contact><exclude body1="a" body2="c"/></contact>'))
    scene = wb.robots.load(file)
    ends = [
        last(Simulation(scene, ProjectiveDynamics(0.02, collisions=on), 2e-3, substeps=1), 10) for on in (True, False)
    ]
    np.testing.assert_array_equal(ends[0].q.numpy(), ends[1].q.numpy())


@pytest.mark.parametrize("rings", [40, pytest.param(75, marks=pytest.mark.slow)])
def test_a_foot_of_thousands_of_vertices_stands_and_weighs_what_it_weighs(rings):
    """A block on three balls, meshes of 6,000 or 22,000 vertices, of which a few hundred are left."""
    ball = trimesh.convex.convex_hull(trimesh.creation.uv_sphere(radius=0.03, count=(rings, 2 * rings)).vertices)
    places = np.array([[0.1, 0.0], [-0.05, 0.08], [-0.05, -0.08]])
    shapes = [TriangleMesh(ball.vertices + [*xy, 0.03 + GAP], ball.faces) for xy in places]
    feet = [RigidBody(f"foot {k}", shape, 500.0) for k, shape in enumerate(shapes)]
    top = cube("top", (-0.05, -0.05, 0.08), side=0.1)
    joints = [Joint(f.name + " fixed", "fixed", "top", f.name) for f in feet]
    scene = Scene((top, *feet), obstacles=(floor(friction=0.5),), joints=joints)
    sim = simulated(scene, 0.04, 5e-3)
    end = last(sim, 40)
    mass = 1000.0 * 0.1**3 + 3 * 500.0 * ball.volume
    counts = np.bincount(sim.model.topology.bone_surfaces.bone)
    assert len(ball.vertices) > 6000
    assert counts[1:].max() < 1000
    assert abs(-sim.report().obstacle_force[0, 0, 2] / (mass * G) - 1.0) < 1e-3
    assert abs(sim.sense(end).velocity).max() < 1e-3
