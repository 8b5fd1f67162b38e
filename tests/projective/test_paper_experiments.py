"""The experiments on soft multi-body systems in benchmarks/papers: their meshes, their measures, and what they find."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from soft_bodies import forces_at

import warpbots as wb
from warpbots.contact.distance import signed_distance

PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"
sys.path.insert(0, str(PAPERS))

import softbody_bridges as bridges  # noqa: E402
import softbody_cloth as thrown  # noqa: E402
import softbody_grip as grip  # noqa: E402
import softbody_humanoid as humanoid  # noqa: E402
import softbody_measures as measures  # noqa: E402
import softbody_shapes as shapes  # noqa: E402
import softbody_skeleton as skeleton  # noqa: E402


def test_depth_and_crossings_of_a_cube():
    """A point 0.2 under a face of the unit cube, and edges that pass through faces or only through their planes."""
    import trimesh

    cube = trimesh.creation.box((1.0, 1.0, 1.0))
    corners = np.asarray(cube.vertices)[cube.faces]
    points = np.array([[0.3, 0.0, 0.1], [0.7, 0.0, 0.0], [-0.45, 0.1, 0.0], [0.4, 0.4, 0.6]])
    np.testing.assert_allclose(measures.winding(points, corners), [1.0, 0.0, 1.0, 0.0], atol=1e-12)
    assert measures.depth(points, corners) == pytest.approx(0.2)
    assert measures.depth(points[[1, 3]], corners) == 0.0
    faces = len(cube.vertices) + np.array([[0, 1, 2]])
    triangles = {
        0: [[0.2, 0.1, 0.02], [0.25, 0.15, 0.03], [0.1, 0.15, 0.02]],  # inside
        1: [[-1.0, 0.1, 0.02], [1.0, 0.1, 0.03], [0.0, 0.0, 5.0]],  # skewers the cube
        2: [[0.2, 0.1, 0.02], [0.25, 0.15, 0.03], [0.9, 0.05, 0.02]],  # looks out
    }
    for through, triangle in [*triangles.items(), (0, np.array(triangles[2]) + [0.0, 0.0, 0.6])]:
        x = np.concatenate([cube.vertices, triangle])
        assert measures.crossings(x, faces, np.asarray(cube.faces)) == through
    assert measures.samples(np.eye(3), np.array([[0, 1, 2]]), 2).tolist() == [
        [0.0, 0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]
    ]  # fmt: skip


@pytest.mark.verification
def test_the_forces_are_those_of_the_energy(rng):
    """Along a random direction from a random state of ball and cloth, to 1e-6."""
    sim = thrown.simulation(0)
    mesh = sim.model.matter
    X = mesh.position
    x, along = X + 3e-3 * rng.normal(size=X.shape), rng.normal(size=X.shape)
    along[sim.model.topology.fixed] = 0.0
    up, down = (thrown.energy(sim, x + sign * 1e-6 * along, 0.0 * X) for sign in (1.0, -1.0))
    assert (forces_at(sim, x) * along).sum() == pytest.approx(-(up - down) / 2e-6, rel=1e-6)


def test_the_ball_bounces_off_the_cloth():
    """It is pressed flat and becomes wider, nothing passes through anything, and no energy comes from nowhere."""
    mesh = thrown.simulation(0).model.matter
    assert [len(mesh.tets), len(mesh.triangles), *np.bincount(mesh.body)] == [80, 128, 43, 81]
    found = thrown.throw(0, 30)
    assert not any(found["depth"])
    assert not any(found["through"])
    size, energy = np.array(found["size"]), np.array(found["energy"])
    assert size[:, 2].min() < 0.85
    assert size[:, :2].max() > 1.03
    assert found["height"][-1] > min(found["height"]) + 0.01  # on its way up
    assert (np.diff(energy) < 1e-6 * energy[0]).all()
    row = thrown.summary(found)
    assert row["penetration [mm]"] == 0.0
    assert 130.0 > row["in contact"] > row["iterations"] > 0.0  # 191 where contacts are searched at ends alone


def test_measures_see_what_passes_through():
    sim = thrown.simulation(0)
    free = wb.Simulation(sim.scene, dataclasses.replace(sim.solver, collisions=False), thrown.STEP)
    ball, cloth = (part.faces + part.nodes.start for part in free.model.matter.meshes)
    with torch.no_grad():
        x = free.rollout(None, 5).final.position[0].double().cpu().numpy()
    assert measures.depth(measures.samples(x, cloth), x[ball]) > 0.01
    assert measures.crossings(x, ball, cloth) + measures.crossings(x, cloth, ball) > 10


@pytest.mark.parametrize(("make", "count"), [(shapes.suspension_bridge, 668), (shapes.arch_bridge, 2911)])
def test_bridges_have_the_published_sizes(make, count):
    """As many tetrahedra, in one piece that hangs together by faces, of no bad shape, and mirrored across y."""
    mesh = make()
    assert len(mesh.tets) == count
    sides = np.sort(mesh.tets[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]].reshape(-1, 3), axis=1)
    _, face, uses = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(face, kind="stable")
    inner = order[np.isin(face[order], np.flatnonzero(uses == 2))].reshape(-1, 2) // 4
    graph = coo_matrix((np.ones(len(inner)), inner.T), (count, count))
    assert connected_components(graph)[0] == 1
    assert wb.meshing.quality(mesh).min_angle > 7.0
    middle = mesh.vertices[:, 1].max() / 2.0
    mirrored = mesh.vertices * [1.0, -1.0, 1.0] + [0.0, 2.0 * middle, 0.0]
    assert {tuple(v) for v in mirrored.round(6)} == {tuple(v) for v in mesh.vertices.round(6)}


def test_cells_are_cut_into_any_number():
    """Two cells side by side have 10 to 12 tetrahedra; the volume is theirs."""
    for count in (10, 11, 12):
        nodes, tets = shapes.cut([(0, 0, 0), (1, 0, 0)], count)
        assert wb.shapes.TetMesh.oriented(nodes.astype(float), tets).volumes.sum() == pytest.approx(2.0)
        assert len(tets) == count
    with pytest.raises(ValueError, match="2 cells, of which 2 may be cut into five, have 10 to 12 tetrahedra, got 9"):
        shapes.cut([(0, 0, 0), (1, 0, 0)], 9)


@pytest.mark.verification
def test_the_slope_of_the_loss_is_that_of_differences():
    """Along a random direction of all 1,336 unknowns, to 5e-6: what is left of the bends and of the tolerance."""
    slope, difference = bridges.slopes(bridges.Bridge("suspension", 1e-12), 1e-3)
    assert slope == pytest.approx(difference, rel=5e-6)


@pytest.mark.verification
def test_the_suspension_bridge_is_identified():
    """To a tenth of a millimetre in six evaluations, within bounds and differently in every element."""
    bridge = bridges.Bridge("suspension", 1e-6)
    bridge.start(3)
    bridges.by_gauss_newton(bridge, 3, 6)
    assert bridge.losses[0] > 0.04
    assert bridge.losses[-1] < 1e-4
    E, nu = (field.detach().numpy() for field in bridge.fields().values())
    assert E.shape == nu.shape == (1, 668)
    assert bridges.MODULUS[0] < E.min() < E.max() < bridges.MODULUS[1]
    assert bridges.RATIO[0] < nu.min() < nu.max() < bridges.RATIO[1]
    assert len(np.unique(E)) == len(np.unique(nu)) == 668


@pytest.mark.slow
@pytest.mark.parametrize("script", ["softbody_cloth", "softbody_bridges"])
def test_scripts_run(script, tmp_path):
    if script == "softbody_bridges":
        for package in ("cma", "nlopt"):
            pytest.importorskip(package)
    found = tmp_path / "found.json"
    command = [sys.executable, str(PAPERS / f"{script}.py"), "--quick", "--json", str(found)]
    environment = {n: v for n, v in os.environ.items() if n != "WARPBOTS_PRECISION"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert found.stat().st_size > 1000


def test_the_gripper_has_fourteen_cells_in_each_arm():
    """Of four tetrahedra-filled blocks, the outer one in every layer; with its drone it weighs 10 kg, the ball 1 kg."""
    scene = grip.gripper_scene()
    model = wb.ProjectiveDynamics(0.04).build(scene)
    mesh = model.matter
    middle = mesh.position[mesh.tets].mean(axis=1)
    for shape in grip.chambers().values():
        own = middle[(signed_distance(shape, middle) < 0.0) & (mesh.body[mesh.tets[:, 0]] == 0)]
        assert len(own) == 6 * grip.CELLS
        assert len(np.unique(np.floor((own[:, 2] - grip.END) / grip.LENGTH * grip.CELLS))) == grip.CELLS
    mass = np.bincount(mesh.body, mesh.volume * mesh.density)
    assert mass[1] == pytest.approx(1.0, rel=1e-5)
    assert mass[0] + scene.rigid[0].inertia.mass == pytest.approx(10.0, rel=1e-5)


def test_errors_of_a_skeleton_are_what_they_say():
    """Of markers that are moved by hand: turned as a whole, with arms lifted by 30 degrees, and stretched by a tenth."""
    rest = np.stack([skeleton.place(name, box) for name, box in humanoid.markers(0.1).items()])
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    still, turned = np.stack([rest] * 30), np.stack([rest] * 10 + [rest @ turn.T] * 20)
    lifted = np.stack([rest] * 30)
    for side, arm in ((-1.0, "left_arm"), (1.0, "right_arm")):
        for end in ("first", "last"):
            k = skeleton.NAMES.index(f"{arm}_{end}")
            out = abs(rest[k, 0]) - 0.14
            lifted[10:, k] += out * np.array([side * (np.cos(np.pi / 6) - 1.0), 0.0, np.sin(np.pi / 6)])
    stretched = np.stack([rest] * 10 + [rest * (1.0, 1.0, 1.1)] * 20)
    np.testing.assert_allclose(skeleton.measure(still, still), [0.0, 0.0, 45.0], atol=1e-9)
    np.testing.assert_allclose(skeleton.measure(turned, still), [0.0, 0.0, 45.0], atol=1e-9)
    np.testing.assert_allclose(skeleton.measure(lifted, still), [0.0, 0.0, 15.0], atol=1e-9)
    np.testing.assert_allclose(skeleton.measure(stretched, still), [6.0, 10.0, 45.0], atol=1e-9)


def test_bones_keep_their_length_and_lift_the_arms():
    """The humanoid stands and reaches its Y-pose to a degree."""
    motion = skeleton.move(skeleton.soft(*skeleton.start(0)), 0)[1]
    bones, _, angle = skeleton.measure(motion, motion)
    assert bones < 1e-4
    assert angle < 1.0
