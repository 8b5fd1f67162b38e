"""Stages opened in Blender with default settings: every body is in the picture, in its colour, from start to end.

Blender is a module of several hundred megabytes and has its own requirements, so it is not in the environment of the
tests: ``python3.11 -m venv blender``, ``blender/bin/pip install bpy==4.5.15`` and WARPBOTS_BLENDER=blender/bin/python
run these tests.
"""

import colorsys
import dataclasses
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import warpbots as wb
from warpbots import usd
from warpbots.scene import Box, Capsule, Cylinder, Points, Sheet, Sphere, TetMesh, Union

BLENDER = os.environ.get("WARPBOTS_BLENDER", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BLENDER, reason="needs Blender: WARPBOTS_BLENDER is no Python with the module bpy"),
]

BLUE, RED, GREEN, ORANGE = (0.15, 0.35, 0.85), (0.85, 0.12, 0.15), (0.15, 0.65, 0.25), (0.9, 0.5, 0.1)
SOFT = wb.Material(5e4, damping=1e-3)


def opened(stage, folder):
    """What Blender says of a stage, and the pictures as arrays of shape (120, 160, 3) in [0, 1]."""
    folder.mkdir()
    script = Path(__file__).with_name("render_in_blender.py")
    run = subprocess.run([BLENDER, script, stage, folder], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    said = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("FOUND "))[6:])
    return said, [np.asarray(Image.open(folder / f"{k}.png").convert("RGB")) / 255.0 for k in said["frames"]]


def hues(picture):
    """Hue of each pixel in [0, 1); NaN for pixels that are nearly grey, shape (n_rows, n_columns)."""
    low, high = picture.min(axis=2), picture.max(axis=2)
    found = np.array([colorsys.rgb_to_hsv(*pixel)[0] for pixel in picture.reshape(-1, 3)]).reshape(low.shape)
    return np.where(high - low > 0.25 * high, found, np.nan)


def share(picture, color):
    """Fraction of the pixels with the hue of `color`, and whether any of them is at the edge of the picture."""
    away = np.abs(hues(picture) - colorsys.rgb_to_hsv(*color)[0])
    there = np.minimum(away, 1.0 - away) < 0.06
    rim = np.concatenate([there[0], there[-1], there[:, 0], there[:, -1]])
    return there.mean(), rim.any()


def assert_seen(file, colors, tmp_path, least=0.003):
    said, pictures = opened(file, tmp_path / "pictures")
    assert said["cameras"] == 1 and len(pictures) >= 1
    for picture in pictures:
        for color in colors:
            seen, cut = share(picture, color)
            assert seen > least, (color, seen)
            assert not cut, color
        assert 0.25 < np.median(picture) < 0.9  # neither dark nor blotted out
    return said, pictures


def motion(scene, solver, steps=30, dt=1 / 30, **options):
    return wb.Simulation(scene, solver, dt, **options).rollout(None, steps=steps)


def ball(color=BLUE, place=(0.0, 0.0, 0.25), **more):
    return wb.SoftBody("ball", Sphere(place, 0.1), SOFT, color=color, velocity=(0.5, 0.0, 0.0), **more)


def lattice_block():
    return wb.SoftBody("block", Box((0.3, -0.1, 0.0), (0.5, 0.1, 0.15)), SOFT, color=RED)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (wb.MPM(dx=0.03), {}),
        (wb.MassSpring(0.025), {"substeps": None}),
        (wb.ProjectiveDynamics(0.035), {}),
    ],
    ids=["mpm", "springs", "tetrahedra"],
)
def test_soft_bodies(solver, options, tmp_path):
    """A ball that falls and rolls, and a block that stands: seen from the first frame to the last."""
    scene = wb.Scene([ball(), lattice_block()], obstacles=[wb.floor()], name="drop")
    usd.write(tmp_path / "drop.usda", motion(scene, solver, **options))
    said, _ = assert_seen(tmp_path / "drop.usda", [BLUE, RED], tmp_path)
    assert sum(count > 100 for count in said["meshes"].values()) >= 2


def test_a_walker_in_2d(tmp_path):
    scene = usd.read(Path(__file__).resolve().parents[2] / "usd_scenes" / "walker.usda")
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], color=RED)], source=None)
    usd.write(tmp_path / "walk.usda", motion(scene, wb.MPM(dx=1 / 80), 60, 5e-3, substeps=5), fps=200)
    assert_seen(tmp_path / "walk.usda", [RED], tmp_path, least=0.05)


def test_cloth(tmp_path):
    u = np.linspace(-0.15, 0.15, 12)
    points = np.stack([*np.meshgrid(u, u, indexing="ij"), np.full((12, 12), 0.26)], axis=-1).reshape(-1, 3)
    n = np.arange(144).reshape(12, 12)
    a, b, c, d = (q.ravel() for q in (n[:-1, :-1], n[1:, :-1], n[1:, 1:], n[:-1, 1:]))
    sheet = Sheet(points, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]), 2e-3)
    cloth = wb.SoftBody("cloth", sheet, wb.Material(1e5, density=500.0), color=ORANGE)
    rock = wb.Obstacle(Sphere((0.0, 0.0, 0.1), 0.1), name="rock")
    scene = wb.Scene([cloth], obstacles=[rock, wb.floor()], name="cloth")
    usd.write(tmp_path / "cloth.usda", motion(scene, wb.ProjectiveDynamics(0.05), 20))
    assert_seen(tmp_path / "cloth.usda", [ORANGE], tmp_path)


def test_rigid_bodies_and_what_they_meet(tmp_path):
    """A pendulum of a union of shapes: boxes, capsules and cylinders have colours in Blender only as meshes."""
    shape = Union((Box((-0.02, -0.05, -0.02), (0.02, 0.05, 0.02)), Capsule((0, 0, 0), (0.2, 0, 0), 0.02)))
    arm = wb.RigidBody("arm", shape, color=GREEN, position=(0.0, 0.0, 0.5))
    bob = wb.RigidBody("bob", Cylinder((0.0, -0.03, 0.0), (0.0, 0.03, 0.0), 0.05), color=RED, position=(0.2, 0.0, 0.5))
    joints = [
        wb.Joint("shoulder", "revolute", None, "arm", axis=(0, 1, 0), position=(0.0, 0.0, 0.5)),
        wb.Joint("elbow", "revolute", "arm", "bob", axis=(0, 1, 0), position=(0.2, 0.0, 0.5)),
    ]
    scene = wb.Scene([arm, bob], joints=joints, obstacles=[wb.floor()], contacts=(), name="pendulum")
    usd.write(tmp_path / "swing.usda", motion(scene, wb.Articulated(), 30, 0.02))
    assert_seen(tmp_path / "swing.usda", [GREEN, RED], tmp_path)


def test_values_as_colours(tmp_path):
    """A beam, half of which is stiffer: yellow, where the other half is violet."""
    beam = wb.SoftBody("beam", Box((0, 0, 0), (0.3, 0.1, 0.1)), SOFT, color=RED)
    sim = wb.Simulation(wb.Scene([beam], obstacles=[wb.floor()]), wb.MPM(dx=0.03), 1 / 60)
    E = sim.parameter("youngs_modulus")
    right = torch.as_tensor(sim.model.matter.position[:, 0] > 0.15)
    stiff = torch.where(right, E, E / 3.0)
    usd.write(tmp_path / "beam.usda", sim.rollout(None, 4, youngs_modulus=stiff), color="youngs_modulus")
    yellow, violet = (0.99, 0.91, 0.15), (0.27, 0.0, 0.33)
    assert_seen(tmp_path / "beam.usda", [yellow, violet], tmp_path)


def test_a_long_walk_is_followed(tmp_path):
    """A ball that flies 4 m is as large at the end as at the start."""
    flying = dataclasses.replace(ball(), velocity=(8.0, 0.0, 0.0))
    scene = wb.Scene([flying], gravity=(0.0, 0.0, 0.0), domain=((-0.5, -0.5, -0.5), (5.0, 0.5, 1.0)))
    usd.write(tmp_path / "far.usda", motion(scene, wb.MPM(dx=0.05), 30, 1 / 60), fps=60)
    _, pictures = assert_seen(tmp_path / "far.usda", [BLUE], tmp_path, least=0.02)
    sizes = [share(picture, BLUE)[0] for picture in pictures]
    assert max(sizes) < 1.5 * min(sizes)


def test_one_file(tmp_path):
    usd.write(tmp_path / "drop.usdz", motion(wb.Scene([ball()], obstacles=[wb.floor()]), wb.MPM(dx=0.05), 6))
    assert_seen(tmp_path / "drop.usdz", [BLUE], tmp_path)


def test_water_and_points(tmp_path):
    """Bodies without a skin are seen as their particles."""
    liquid = wb.Material(2e4, 1 / 3, 1000.0, "weakly_compressible")
    water = wb.SoftBody("water", Box((-0.1, -0.1, 0.0), (0.1, 0.1, 0.2)), liquid, color=BLUE)
    places = np.stack(np.meshgrid(*[np.linspace(-0.1, 0.1, 6)] * 3), axis=-1).reshape(-1, 3) + [0.5, 0.0, 0.15]
    cloud = wb.SoftBody("cloud", Points(places, np.full(216, 6e-5)), SOFT, color=RED)
    scene = wb.Scene([water, cloud], obstacles=[wb.floor()], domain=((-0.6, -0.6, -0.1), (1.1, 0.6, 0.5)))
    usd.write(tmp_path / "water.usda", motion(scene, wb.MPM(dx=0.05), 8, 1 / 60))
    assert_seen(tmp_path / "water.usda", [BLUE, RED], tmp_path)


@pytest.mark.parametrize("solid", ["shapes", "tetrahedra"])
def test_a_scene(solid, tmp_path):
    """Shapes have colours in Blender with `surfaces`, and tetrahedra in any case."""
    bodies = [ball(), lattice_block()]
    if solid == "tetrahedra":
        meshed = wb.Simulation(wb.Scene(bodies), wb.ProjectiveDynamics(0.04), 1 / 60).model.matter
        bodies = []
        for name, color, mesh in zip(("ball", "block"), (BLUE, RED), meshed.meshes, strict=True):
            inside = (meshed.tets[:, 0] >= mesh.nodes.start) & (meshed.tets[:, 0] < mesh.nodes.stop)
            tets = TetMesh(meshed.position[mesh.nodes], meshed.tets[inside] - mesh.nodes.start)
            bodies.append(wb.SoftBody(name, tets, SOFT, color=color))
    scene = wb.Scene(bodies, obstacles=[wb.floor()], name="still")
    usd.write(tmp_path / "still.usdc", scene, surfaces=solid == "shapes")
    assert usd.read(tmp_path / "still.usdc") == scene
    assert_seen(tmp_path / "still.usdc", [BLUE, RED], tmp_path)
