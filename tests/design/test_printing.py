"""Printed parts: solids, holes, walls, overhang, collisions and files against closed forms."""

import re

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Manifold
from scipy.spatial.transform import Rotation

import warpbots as wb
from warpbots import design
from warpbots.design import export, joint, knuckle, palm, phalanx, tip
from warpbots.design.export.collisions import sweep
from warpbots.design.export.motion import moves_of, path_between
from warpbots.design.export.orientation import turned_to_fit
from warpbots.design.export.solids import body_solid, mesh_of
from warpbots.scene import Box, Cylinder, Posed, Sphere, TriangleMesh, Union

PRINTER = export.Printer()


def block(name: str = "block", lower=(0.0, 0.0, 0.0), upper=(0.03, 0.02, 0.01), **options) -> wb.RigidBody:
    return wb.RigidBody(name, Box(lower, upper), **options)


def one(body: wb.RigidBody, *holes, joints=(), **options) -> export.PrintedPart:
    (part,) = export.printed_parts(wb.Scene([body], joints=joints), holes, **options)
    return part


def turned(rng) -> np.ndarray:
    return Rotation.random(rng=rng).as_matrix()


def kinds(faults) -> set[str]:
    return {fault.kind for fault in faults}


# solids


def test_shapes_that_touch_or_overlap_become_one_solid(rng):
    """However the body is turned: a box, a box on its side, a cylinder on it and one in it, as one closed surface."""
    shapes = [Box((0, 0, 0), (0.01, 0.01, 0.01)), Box((0.01, 0, 0), (0.02, 0.01, 0.01)),
              Cylinder((0.005, 0.005, 0.01), (0.005, 0.005, 0.02), 0.003),
              Cylinder((0.015, 0.005, 0.008), (0.015, 0.005, 0.02), 0.003)]  # fmt: skip
    prism = 10.0 * 64 / 2 * np.sin(2 * np.pi / 64) * 3.0**2
    center = (2000.0 * np.array([10, 5, 5]) + 2 * prism * np.array([10, 5, 15])) / (2000.0 + 2 * prism)
    for _ in range(30):
        R = turned(rng)
        solid = body_solid(wb.RigidBody("b", Union([Posed(s, (0.1, 0.2, 0.0), R.tolist()) for s in shapes])))
        assert len(solid.decompose()) == 1
        assert solid.volume() == pytest.approx(2000.0 + 2 * prism, rel=1e-5)
        assert mesh_of(solid).center_mass == pytest.approx(R @ center + [100, 200, 0], abs=1e-4)


def test_a_hollow_ball_stays_hollow_and_is_remarked():
    outer, inner = (trimesh.creation.icosphere(subdivisions=2, radius=r) for r in (0.01, 0.005))
    inner.invert()
    mesh = trimesh.util.concatenate([outer, inner])
    body = wb.RigidBody(
        "ball", Union([TriangleMesh(mesh.vertices, mesh.faces), Box((0.009, -0.001, -0.001), (0.02, 0.001, 0.001))])
    )
    assert body_solid(body).volume() < 1e9 * outer.volume
    faults = export.part_faults("ball", one(body).mesh, PRINTER)
    (cavity,) = (f for f in faults if f.kind == "cavity")
    assert not cavity.prevents
    assert f"of {-1e9 * inner.volume:.3g} mm^3" in cavity.what


def test_shapes_apart_are_named():
    body = wb.RigidBody("b", Union([Box((0, 0, 0), (0.01, 0.01, 0.01)), Box((0.02, 0, 0), (0.03, 0.01, 0.01))]))
    (fault,) = export.part_faults("b", one(body).mesh, PRINTER)
    assert (fault.kind, fault.value, fault.limit) == ("pieces", 2, 1)
    assert str(fault) == "Part 'b': it falls into 2 pieces; let its shapes overlap, or make a body of each piece"


# holes


def test_an_axle_hole_goes_through_both_bodies_with_clearance():
    """The facets of a hole touch the circle from outside: its volume is that of a prism of 64 sides."""
    position, R = (0.1, -0.2, 0.3), Rotation.from_rotvec((0.3, -0.5, 0.2)).as_matrix()
    bodies = [block(n, (-0.01, lo, -0.01), (0.02, hi, 0.01), position=position, rotation=R.tolist())
              for n, lo, hi in (("near", 0.0, 0.004), ("far", 0.0045, 0.0125))]  # fmt: skip
    joint = wb.Joint("pin", "revolute", "near", "far", position, rotation=R.tolist(), axis=(0, 1, 0))
    near, far = export.printed_parts(wb.Scene(bodies, joints=[joint]), [export.AxleHole("pin", 0.003, 2e-4, 1e-4)])
    for part, width, length in ((near, 2.9, 4.0), (far, 3.2, 8.0)):
        (bore,) = part.drilled
        hole = 64 * np.tan(np.pi / 64) * (width / 2) ** 2 * length
        assert bore.diameter == pytest.approx(width, rel=1e-12)
        assert bore.volume == pytest.approx(hole, rel=1e-9)
        assert part.mesh.volume == pytest.approx(30.0 * 20.0 * length - hole, rel=1e-6)
        center = np.linalg.solve(part.pose, [*part.mesh.center_mass, 1.0])[:3]
        assert mesh_of(part.placed).center_mass == pytest.approx(R @ center + 1000 * np.array(position), abs=1e-6)
        axle = Manifold.cylinder(100.0, width / 2, width / 2, 200, True).rotate((90, 0, 0))
        turn = np.column_stack([R, 1000 * np.array(position)])
        assert (axle.transform(turn) ^ part.placed).volume() < 1e-6
    assert (near.drilled[0].start, near.drilled[0].end) == pytest.approx((0.0, 4.0), abs=1e-9)
    assert (far.drilled[0].start, far.drilled[0].end) == pytest.approx((4.5, 12.5), abs=1e-9)


def test_an_axle_holds_one_finger_of_several():
    """Two fingers between cheeks of one palm, on one line: each axle goes through its finger and the cheeks beside it."""
    cheeks = [Box((0, 1e-3 * y, 0), (0.02, 1e-3 * y + 0.003, 0.01)) for y in (0, 9, 20, 29, 40)]
    palm = wb.RigidBody("palm", Union([Box((-0.01, 0, 0), (0.001, 0.043, 0.01)), *cheeks]))
    fingers = [block(name, (0.01, y, 0), (0.06, y + 0.005, 0.01)) for name, y in (("near", 0.0035), ("far", 0.0235))]
    joints = [wb.Joint(f.name, "revolute", "palm", f.name, (0.015, 0, 0.005), axis=(0, 1, 0)) for f in fingers]
    scene = wb.Scene([palm, *fingers], joints=joints)
    parts = export.printed_parts(scene, [export.AxleHole(f.name, 0.002) for f in fingers])
    spans = [[(d.start, d.end) for d in part.drilled] for part in parts]
    assert spans[0] == [pytest.approx((0.0, 12.0), abs=1e-3), pytest.approx((20.0, 32.0), abs=1e-3)]
    assert spans[1:] == [[pytest.approx((3.5, 8.5), abs=1e-3)], [pytest.approx((23.5, 28.5), abs=1e-3)]]
    hole = 64 * np.tan(np.pi / 64)
    assert parts[0].mesh.volume == pytest.approx(43 * 110 + 5 * 3 * 190 - hole * 4 * 3, rel=1e-4)


def test_a_tendon_channel_bends_and_opens():
    """A bent channel through a block: two cylinders, which meet in a ball."""
    points = [(0.0, 0.01, 0.005), (0.015, 0.01, 0.005), (0.015, 0.01, 0.01)]
    part = one(block(), export.TendonChannel("block", points, 0.002))
    assert part.drilled[0].end == pytest.approx(20.0)
    # a quarter of the ball at the bend is in neither cylinder; the cylinders share a quarter of Steinmetz's solid, 16/3
    expected = np.pi * 20.0 - 0.25 * 16 / 3 + 0.25 * 4 / 3 * np.pi
    assert 6000.0 - part.mesh.volume == pytest.approx(expected, rel=2e-3)
    assert len(part.mesh.split()) == 1
    assert part.mesh.euler_number == 0  # of a block with a handle
    assert "cavity" not in kinds(export.part_faults("block", part.mesh, PRINTER))
    buried = one(block(), export.TendonChannel("block", [(0.01, 0.01, 0.005), (0.02, 0.01, 0.005)], 0.002))
    assert "cavity" in kinds(export.part_faults("block", buried.mesh, PRINTER))


def test_a_hole_that_ends_on_a_face_leaves_no_film():
    """Neither a channel, nor an axle hole of a given length, in a body of two shapes that touch."""
    shape = Union([Box((0, 0, 0), (0.03, 0.02, 0.01)), Box((-0.01, 0, 0), (0, 0.005, 0.01))])
    link, base = wb.RigidBody("link", shape), block("base", (0.0, 0.0, -0.02), (0.03, 0.02, -0.001))
    joint = wb.Joint("pin", "revolute", "base", "link", (0.02, 0.01, 0.005))
    holes = [
        export.TendonChannel("link", [(0, 0.015, 0.005), (0.03, 0.015, 0.005)], 0.002),
        export.AxleHole("pin", 0.002, length=0.05),
    ]
    part = export.printed_parts(wb.Scene([base, link], joints=[joint]), holes)[1]
    flush = export.AxleHole("pin", 0.002, length=0.01)
    alone = one(link, flush, joints=[wb.Joint("pin", "revolute", None, "link", (0.02, 0.01, 0.005))])
    for mesh in (part.mesh, alone.mesh):
        assert export.thinnest_wall(mesh, 0.8).thickness > 0.8
    assert alone.mesh.euler_number == 0  # one handle: the hole goes through


# walls


@pytest.mark.parametrize("thickness", [0.3, 0.8, 5.0])
def test_walls_of_plates_and_tubes(thickness, rng):
    plate = trimesh.creation.box((40.0, 30.0, thickness))
    plate.apply_transform(np.block([[turned(rng), np.zeros((3, 1))], [np.zeros(3), 1.0]]))
    assert export.thinnest_wall(plate, 0.8).thickness == pytest.approx(thickness, rel=1e-9)
    tube = trimesh.creation.annulus(10.0 - thickness, 10.0, 30.0, sections=96)
    wall = export.thinnest_wall(tube, 0.8)
    assert wall.thickness == pytest.approx(thickness * np.cos(np.pi / 96), rel=1e-6)  # between parallel facets


def test_the_thinnest_place_is_found():
    """Of a tube with a bore off its axis, of a ball with a void off its centre, and under a hole in a block."""
    tube = Manifold.cylinder(30, 10, 10, 256) - Manifold.cylinder(30, 9, 9, 256).translate((0.6, 0, 0))
    wall = export.thinnest_wall(mesh_of(tube), 0.8)
    assert wall.thickness == pytest.approx(0.4, abs=2e-3)
    assert wall.place[0] > 9.0
    shell = Manifold.sphere(10, 100) - Manifold.sphere(9, 100).translate((0.3, 0.4, 0.5))
    wall = export.thinnest_wall(mesh_of(shell), 0.8)
    assert wall.thickness == pytest.approx(1.0 - np.sqrt(0.5), abs=3e-3)
    assert np.dot(wall.place, (0.3, 0.4, 0.5)) / np.sqrt(0.5) > 8.5
    part = one(
        block(),
        export.TendonChannel("block", [(0, 0.01, 0.0013), (0.03, 0.01, 0.0013)], 0.002),
        up={"block": (0, 0, 1)},
    )
    (fault,) = export.part_faults("block", part.mesh, PRINTER)
    assert (fault.kind, fault.limit) == ("wall", 0.8)
    assert fault.value == pytest.approx(1.3 - 1 / np.cos(np.pi / 64), abs=1e-6)  # at a corner of the channel
    assert "is 0.30 mm thick, thinner than 0.80 mm" in fault.what


def test_blunt_edges_are_no_walls():
    assert export.thinnest_wall(trimesh.creation.cone(5.0, 5.0), 0.8) is None
    needle = export.thinnest_wall(trimesh.creation.cone(1.0, 20.0), 0.8)
    assert needle.thickness < 0.05


def test_a_part_too_thin_to_print():
    foil = one(wb.RigidBody("foil", Box((0, 0, 0), (0.05, 0.05, 1e-4))))
    (fault,) = export.part_faults("foil", foil.mesh, PRINTER)
    assert str(fault).startswith("Part 'foil': a wall at (")
    assert fault.value == pytest.approx(0.1, rel=1e-9)
    assert "\n" not in str(fault)


# overhang and orientation


@pytest.mark.parametrize("angle", [30.0, 45.0, 60.0])
def test_overhang_of_a_sphere_a_cone_and_a_box(angle):
    ball = trimesh.creation.icosphere(subdivisions=5, radius=10.0)
    assert export.overhang_share(ball, angle) == pytest.approx((1 - np.sin(np.radians(angle))) / 2, abs=1e-3)
    for half in (angle - 2.0, angle + 2.0):  # half the angle of a cone on its tip
        cone = trimesh.creation.cone(10 * np.tan(np.radians(half)), 10.0, sections=180)
        side = 1 / (1 + np.sin(np.radians(half)))
        down = np.array([0.0, 0.0, -1.0])
        assert export.overhang_share(cone, angle, down) == pytest.approx(side if half > angle else 0.0, abs=1e-3)
        assert export.overhang_share(cone, angle) == 0.0
    box = trimesh.creation.box((10, 20, 30))
    assert export.overhang_share(box, angle) == 0.0


def table() -> wb.RigidBody:
    """A plate of 40 by 40 by 4 on a leg of 8 by 8 by 20."""
    return wb.RigidBody(
        "table",
        Union([Box((-0.02, -0.02, 0.02), (0.02, 0.02, 0.024)), Box((-0.004, -0.004, 0.0), (0.004, 0.004, 0.021))]),
    )


def test_a_table_is_printed_upside_down(rng):
    R = turned(rng).tolist()
    part = one(wb.RigidBody("table", Union([Posed(s, (0.0, 0.0, 0.0), R) for s in table().shape.shapes])))
    assert part.mesh.bounds == pytest.approx(np.array([[0, 0, 0], [40, 40, 24]]), abs=1e-3)
    assert part.mesh.center_mass[2] < 8.0
    assert export.overhang_share(part.mesh, 45.0) == 0.0
    on_its_leg = one(table(), up={"table": (0, 0, 1)})
    area = 2 * 40 * 40 + 4 * 40 * 4 + 4 * 8 * 20
    (fault,) = export.part_faults("table", on_its_leg.mesh, PRINTER)
    assert (fault.kind, fault.prevents) == ("overhang", False)
    assert fault.value == pytest.approx((40 * 40 - 8 * 8) / area, rel=1e-4)


def test_overhang_counts_more_than_contact():
    """A foot, a column and a shelf, 20 deep: the shelf has 800 mm^2, and the profile 720 mm^2 without any overhang."""
    profile = [((0, 0), (32, 10)), ((0, 10), (8, 20)), ((0, 20), (40, 28))]
    shapes = [Box((1e-3 * a, 0, 1e-3 * b), (1e-3 * c, 0.02, 1e-3 * d)) for (a, b), (c, d) in profile]
    part = one(wb.RigidBody("shelf", Union(shapes)))
    assert part.mesh.extents == pytest.approx([40, 28, 20], abs=1e-3)
    on_its_shelf = one(wb.RigidBody("shelf", Union(shapes)), up={"shelf": (0, 0, -1)})
    assert export.overhang_share(on_its_shelf.mesh, 45.0) == pytest.approx(480 / part.mesh.area, rel=1e-3)


def test_pose_takes_the_body_to_the_bed():
    part = one(block(lower=(0.1, 0.2, 0.3), upper=(0.13, 0.22, 0.31), position=(1, 2, 3)))
    corners = np.array([[100, 200, 300, 1], [130, 220, 310, 1]]) @ part.pose.T
    assert np.sort(corners[:, :3], axis=0) == pytest.approx(part.mesh.bounds, abs=1e-9)
    assert part.mesh.bounds == pytest.approx(np.array([[0, 0, 0], [30, 20, 10]]), abs=1e-9)


def test_bed_with_the_free_turn_about_the_vertical():
    """A bar of a by b lies across a square bed of side s up to (a + b) / sqrt(2) = s, and no longer one."""

    def bar(length):
        return one(wb.RigidBody("bar", Box((0, 0, 0), (length, 0.01, 0.002))))

    longest = 220 * np.sqrt(2) - 10
    assert export.part_faults("bar", bar(1e-3 * (longest - 0.01)).mesh, PRINTER) == []
    along = trimesh.creation.box((longest - 0.01, 10.0, 2.0))  # as it is, it is too long
    assert export.part_faults("bar", along, PRINTER) == []
    (fault,) = export.part_faults("bar", bar(1e-3 * (longest + 1.0)).mesh, PRINTER)
    assert (fault.kind, fault.limit) == ("bed", pytest.approx(220.0))
    assert fault.value == pytest.approx((longest + 11.0) / np.sqrt(2), abs=1e-4)
    high = one(wb.RigidBody("bar", Box((0, 0, 0), (0.01, 0.01, 0.26))), up={"bar": (0, 0, 1)})
    (fault,) = export.part_faults("bar", high.mesh, PRINTER)
    assert "it is 260.0 mm high, and the printer takes 250.0 mm" in str(fault)
    points = np.array([[0, 0], [300, 0], [300, 10], [0, 10.0]])
    tight, loose = np.array([150.0, 290.0]), np.array([160.0, 290.0])
    fits = [bool((turned_to_fit(points, bed)[1] <= 0).all()) for bed in (tight, loose)]
    sizes = [
        (300 * c + 10 * s, 300 * s + 10 * c)
        for c, s in ((np.cos(t), np.sin(t)) for t in np.linspace(0, np.pi / 2, 20001))
    ]
    assert fits == [any(w <= bed[0] and d <= bed[1] for w, d in sizes) for bed in (tight, loose)]


# broken meshes


def test_open_inverted_and_mixed_meshes_are_named():
    box = trimesh.creation.box((10, 20, 30))
    holed, inverted, mixed = box.copy(), box.copy(), box.copy()
    holed.update_faces(np.arange(12) > 0)
    inverted.invert()
    mixed.faces[0] = mixed.faces[0][::-1]
    (fault,) = export.part_faults("box", holed, PRINTER)
    assert "not watertight, 3 edges do not lie between two faces" in str(fault)
    (fault,) = export.part_faults("box", inverted, PRINTER)
    assert "encloses -6e+03 mm^3, which must be positive" in str(fault)
    (fault,) = export.part_faults("box", mixed, PRINTER)
    assert "faces are turned inside out" in str(fault)


# motion


CHAIN = ["revolute", "ball", "prismatic", "free_2d", "revolute", "planar"]


def chain(rng, kinds=CHAIN) -> wb.Scene:
    """Two branches of bodies on joints of all kinds, everywhere in space."""
    bodies, joints = [], []
    for branch in ("left", "right"):
        parent = None
        for k, kind in enumerate(kinds):
            name = f"{branch}{k}"
            bodies.append(block(name, position=rng.normal(size=3) * 0.05, rotation=turned(rng).tolist()))
            joints.append(
                wb.Joint(name, kind, parent, name, rng.normal(size=3) * 0.05, turned(rng).tolist(), rng.normal(size=3))
            )
            parent = name
    return wb.Scene(bodies, joints=joints)


def coordinates(path, q: np.ndarray) -> dict[str, np.ndarray]:
    """Coordinates of `Articulated` by the name of a joint [rad or m]."""
    found, parts = {}, np.split(q, np.cumsum([len(m.axes) for m in path.moves])[:-1])
    for move, part in zip(path.moves, parts, strict=True):
        if move.turns and len(part) == 3:
            part = Rotation.from_rotvec(part).as_quat()
        found[move.joint] = np.append(found.get(move.joint, []), part if move.turns else part / 1000)
    return found


def placed(position, rotation) -> np.ndarray:
    """A pose [mm] from a position [m] and axes."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, 1000 * np.array(position)
    return pose


def test_poses_are_those_of_the_solver(rng):
    """The pose of one body seen from another, of chains of joints of all kinds, against `Articulated`."""
    scene = chain(rng)
    sim = wb.Simulation(scene, wb.Articulated(), 1e-3)
    moves = {j.name: moves_of(j)[0] for j in scene.joints}
    path = path_between("left5", "right5", scene, moves)
    q = rng.uniform(-1, 1, len(path.lower)) * [1.0 if m.turns else 20.0 for m in path.moves for _ in m.axes]
    robot, given = sim.model.robot, coordinates(path, q)
    full = np.zeros(len(robot.start))
    for name, where in robot.coordinates.items():
        full[where] = given[name]
    found = sim.sense(sim.state(q=full.tolist()))
    poses, start = {}, {}
    for name in ("left5", "right5"):
        k = robot.bodies.index(name)
        body = scene.rigid[k]
        poses[name] = placed(found.position[0, k].numpy(), found.rotation[0, k].numpy())
        start[name] = placed(body.position, body.rotation)
    moved = {name: poses[name] @ np.linalg.inv(start[name]) for name in poses}
    expected = np.linalg.solve(moved["left5"], moved["right5"])
    assert path.pose(q) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kinds", [CHAIN, ["revolute"], ["prismatic"], ["ball", "revolute"], ["revolute", "prismatic"]])
def test_no_point_moves_further_than_the_bound(kinds, rng):
    """Points of one body seen from the other, between poses at random; and the bound is not idle: half of it is not one."""
    share = 0.0
    for _ in range(20):
        scene = chain(rng, kinds)
        far = {j.name: (-0.5, 0.5) for j in scene.joints if j.kind == "prismatic"}
        moves = {j.name: moves_of(j, far)[0] for j in scene.joints}
        path = path_between(f"left{len(kinds) - 1}", f"right{len(kinds) - 1}", scene, moves)
        a, b = (50 * rng.normal(size=(30, 3)) for _ in range(2))
        reach = path.reach(a, b)
        for _ in range(30):
            q = rng.uniform(path.lower, path.upper)
            d = 0.05 * rng.uniform(-1, 1, len(q)) * (rng.integers(0, len(q), len(q)) == 0 if len(q) > 2 else 1)
            other = np.clip(q + d, path.lower, path.upper)
            d = other - q
            distance = [np.linalg.norm((a @ P[:3, :3] - P[:3, 3] @ P[:3, :3])[:, None] - b, axis=-1)
                        for P in (path.pose(q), path.pose(other))]  # fmt: skip
            change, bound = np.abs(distance[0] - distance[1]).max(), reach @ np.abs(d)
            assert change <= bound * (1 + 1e-9) + 1e-9
            share = max(share, change / bound if bound else 0.0)
    assert share > (0.5 if len(kinds) == 1 else 0.02)


def plates(gap: float, lower=None, upper=None, kind: str = "revolute", **options) -> wb.Scene:
    """Two plates of 4 mm on a hinge, from `gap` [m] to 30 mm to both sides of it, above it."""
    a = block("a", (-0.03, -0.01, 0.0), (-gap, 0.01, 0.004))
    b = block("b", (gap, -0.01, 0.0), (0.03, 0.01, 0.004))
    return wb.Scene(
        [a, b], joints=[wb.Joint("hinge", kind, "a", "b", axis=(0, -1, 0), lower=lower, upper=upper, **options)]
    )


def angle(text: str) -> float:
    return np.radians(float(text.split("= ")[1].rstrip("°")))


@pytest.mark.parametrize("gap", [0.001, 0.002, 0.004])
@pytest.mark.parametrize("tolerance", [0.05, 0.01])
def test_a_hinge_collides_at_the_angle_of_its_corners(gap, tolerance):
    """The upper corners of two plates, at (-gap, 4 mm) and (gap, 4 mm), meet at twice atan(gap / 4 mm)."""
    scene = plates(gap, -0.5, 3.0)
    (found,) = sweep(scene, export.printed_parts(scene), tolerance=tolerance).collisions
    meet = 2 * np.arctan2(gap, 0.004)
    assert angle(found.begins) == pytest.approx(meet, abs=0.1 * tolerance / 4 + 1e-3)
    scene = plates(gap, -0.5, meet - 0.01)
    assert sweep(scene, export.printed_parts(scene), tolerance=tolerance).collisions == ()
    scene = plates(gap, -0.5, meet + 2 * tolerance)
    assert len(sweep(scene, export.printed_parts(scene), tolerance=tolerance).collisions) == 1


def test_the_overlap_of_a_collision():
    """Plates that are turned onto one another, less 0.1 rad, overlap most where one lies in the other."""
    scene = plates(0.002, -0.1, np.pi / 2)
    parts = export.printed_parts(scene)
    (found,) = sweep(scene, parts).collisions
    b = parts[1].placed.rotate((0, -90, 0))
    assert found.volume == pytest.approx((parts[0].placed ^ b).volume(), rel=1e-6)
    assert found.at == "hinge = 90.0°"


def test_a_hinge_that_touches_all_the_time_does_not_collide():
    """A tongue between two cheeks without play, round about the axis: contact, no overlap; until its arm meets the base."""
    ring = Cylinder((0, -0.004, 0), (0, 0.004, 0), 0.006)
    link = wb.RigidBody("link", Union([ring, Box((0, -0.004, -0.004), (0.03, 0.004, 0.004))]))
    cheeks = [Box((-0.02, y, -0.006), (0.006, y + 0.004, 0.006)) for y in (-0.008, 0.004)]
    base = wb.RigidBody("base", Union([*cheeks, Box((-0.02, -0.008, -0.006), (-0.008, 0.008, 0.006))]))

    joint = wb.Joint("h", "revolute", "base", "link", axis=(0, 1, 0), lower=-0.2, upper=3.0)
    scene = wb.Scene([base, link], joints=[joint])
    # the arm's side, 4 mm from the axis, meets the base's corner at (-8, 6) mm, 10 mm from it
    meet = np.pi - np.arcsin(0.6) - np.arcsin(0.4)
    (found,) = sweep(scene, export.printed_parts(scene)).collisions
    assert angle(found.begins) == pytest.approx(meet, abs=0.03)


def test_joints_without_limits_are_moved_by_a_stated_range():
    scene = plates(0.001)
    found = sweep(scene, export.printed_parts(scene))
    assert found.notes == ("Joint 'hinge' lacks limits: it was moved from -180.0° to 180.0°.",)
    assert len(found.collisions) == 1  # from above; below, the plates touch in the end
    scene = plates(0.001, lower=-0.1)
    assert sweep(scene, export.printed_parts(scene)).notes == (
        "Joint 'hinge' lacks limits: it was moved from -5.7° to 180.0°.",
    )
    found = sweep(scene, export.printed_parts(scene), {"hinge": (-0.2, 0.3)})
    assert (found.notes, found.collisions) == ((), ())


def test_a_slide_collides_where_its_gap_is_used_up():
    along_x = Rotation.from_euler("z", 90, degrees=True).as_matrix().tolist()  # the axis (0, -1, 0) becomes x
    scene = plates(0.002, -0.01, 0.02, kind="prismatic", rotation=along_x)
    (found,) = sweep(scene, export.printed_parts(scene)).collisions
    assert (found.begins, found.at) == ("hinge = -4.00 mm", "hinge = -10.00 mm")
    assert found.volume == pytest.approx(6.0 * 20.0 * 4.0, rel=1e-6)


def test_what_passes_quickly_is_not_missed():
    """A thin blade on a long arm sweeps through a thin post, once on each side."""
    post = Box((-0.0001, -0.005, -0.1), (0.0001, 0.005, -0.09))
    base = wb.RigidBody(
        "base",
        Union(
            [Box((-0.01, 0.006, -0.1), (0.01, 0.01, 0.01)), Box((-0.0001, 0.004, -0.1), (0.0001, 0.007, -0.09)), post]
        ),
    )
    arm = wb.RigidBody("arm", Box((-0.0001, -0.005, 0.001), (0.0001, 0.003, 0.095)))
    scene = wb.Scene(
        [base, arm], joints=[wb.Joint("h", "revolute", "base", "arm", axis=(0, 1, 0), lower=-np.pi + 0.05, upper=4.0)]
    )
    (found,) = sweep(scene, export.printed_parts(scene), tolerance=0.02).collisions
    assert angle(found.begins) == pytest.approx(np.pi - 0.2 / 90, abs=2e-3)


@pytest.mark.parametrize("depth", [0.04, 0.06, 0.2])
def test_an_overlap_counts_from_the_tolerance_on(depth):
    bodies = [block("a"), block("b", (0.03 - 1e-3 * depth, 0.0, 0.0), (0.05, 0.02, 0.01))]
    scene = wb.Scene(bodies, joints=[wb.Joint("weld", "fixed", "a", "b")])
    found = sweep(scene, export.printed_parts(scene), tolerance=0.05).collisions
    assert len(found) == (depth > 0.05)
    for collision in found:
        assert collision.volume == pytest.approx(depth * 200.0, rel=1e-6)


def three(upper: float) -> wb.Scene:
    """A finger of three plates of 40 by 4 mm that rolls up: hinges at (40, 0) and (80, 0) mm, 1 mm of play at each."""
    bodies = [block(f"b{k}", (0.04 * k + 0.004, -0.01, 0.0), (0.04 * k + 0.036, 0.01, 0.002)) for k in range(3)]
    joints = [
        wb.Joint(f"j{k}", "revolute", f"b{k - 1}", f"b{k}", (0.04 * k, 0, 0), axis=(0, -1, 0), lower=0.0, upper=upper)
        for k in (1, 2)
    ]
    return wb.Scene(bodies, joints=joints)


def test_parts_with_two_joints_between_them():
    """The outer plate of three meets the inner one where both hinges close a triangle, and not in a square.

    And on the way there it begins where poses one by one say so.
    """
    scene = three(2.15)
    parts = export.printed_parts(scene)
    found = sweep(scene, parts)
    assert {(c.first, c.second) for c in found.collisions} == {("b0", "b2")}
    assert not found.undecided
    begins = np.radians([float(v) for v in re.findall(r"= ([\d.]+)°", found.collisions[0].begins)])
    path = path_between("b0", "b2", scene, {j.name: moves_of(j)[0] for j in scene.joints})
    volumes = [
        (parts[0].placed ^ parts[2].placed.transform(path.pose(s * begins)[:3])).volume()
        for s in np.linspace(0, 1.05, 211)
    ]
    assert 1.0 <= 0.005 * int(np.flatnonzero(volumes)[0]) <= 1.01
    scene = three(1.5)  # a square at most: it stays open
    found = sweep(scene, export.printed_parts(scene))
    assert (found.collisions, found.undecided) == ((), {})


def test_what_the_poses_do_not_decide_is_said():
    scene = three(2.12)
    found = sweep(scene, export.printed_parts(scene), poses=1)
    assert found.collisions == ()
    assert 0.0 < found.undecided["b0", "b2"] < 0.01
    assert len(sweep(scene, export.printed_parts(scene)).collisions) == 1  # which more poses find
    report = export.check(scene, poses=1)
    (fault,) = (f for f in report.faults if f.kind == "undecided")
    assert not fault.prevents and "were not decided; use more poses" in str(fault)


def test_fingers_side_by_side_never_meet_and_floating_bodies_are_not_compared():
    """Parallel hinges keep what lies side by side apart, at once; bodies that float are told."""
    left, right = three(3.0), three(3.0)
    bodies = [block("palm", (-0.02, -0.01, 0.0), (-0.001, 0.05, 0.01))]
    joints = []
    for name, y, scene in (("l", 0.0, left), ("r", 0.03, right)):
        bodies += [wb.RigidBody(name + b.name, b.shape, position=(0, y, 0)) for b in scene.rigid]
        joints += [
            wb.Joint(f"{name}j0", "revolute", "palm", f"{name}b0", (0, y, 0), axis=(0, 1, 0), lower=-1.0, upper=0.0)
        ]
        joints += [
            wb.Joint(
                name + j.name,
                "revolute",
                name + j.parent,
                name + j.child,
                (j.position[0], y, 0),
                axis=(0, 1, 0),
                lower=-1.0,
                upper=0.0,
            )
            for j in scene.joints
        ]
    scene = wb.Scene([*bodies, block("loose", (1, 1, 1), (1.1, 1.1, 1.1))], joints=joints)
    found = sweep(scene, export.printed_parts(scene), poses=1)
    assert not any({a[0], b[0]} == {"l", "r"} for a, b in found.undecided)
    assert not any({c.first[0], c.second[0]} == {"l", "r"} for c in found.collisions)
    (note,) = found.notes
    assert note.startswith("No joint but a free one connects 'palm' and 'loose', ")


def test_fixed_bodies_that_overlap():
    scene = wb.Scene(
        [block("a"), block("b", (0.029, 0, 0), (0.05, 0.01, 0.01))], joints=[wb.Joint("weld", "fixed", "a", "b")]
    )
    (fault,) = export.check(scene).faults
    assert (
        str(fault)
        == "Parts 'a' and 'b': they overlap by 100 mm^3 in every pose; move them apart, or make one body of them"
    )


# files


def robot(**options) -> wb.Scene:
    return plates(0.002, -0.5, 0.8, **options)


@pytest.mark.parametrize("format", ["stl", "3mf"])
def test_files_hold_the_parts(format, tmp_path):
    """Opened again by trimesh: closed, in mm, and volume is mass by density."""
    if format == "3mf":
        pytest.importorskip("lib3mf")
    scene = robot()
    holes = [
        export.TendonChannel(n, [(x, 0, 0.002) for x in ends], 0.0015)
        for n, ends in (("a", (-0.03, -0.002)), ("b", (0.002, 0.03)))
    ]
    report = export.check(scene, holes, density=1240.0)
    assert report.printable
    paths = export.write(tmp_path / "parts", report, format)
    assert [p.name for p in paths] == [f"a.{format}", f"b.{format}", "report.md"]
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in paths)
    bore = 64 / 2 * np.sin(2 * np.pi / 64) * 0.75**2
    for path, part, mass in zip(paths, report.parts, report.masses, strict=False):
        found = trimesh.load(path, force="mesh")
        assert found.is_watertight and found.is_winding_consistent
        assert found.bounds == pytest.approx(np.array([[0, 0, 0], [28, 20, 4]]), abs=1e-4)
        assert found.volume == pytest.approx(1e6 * mass / 1240.0, rel=1e-5)
        assert found.volume == pytest.approx(28 * 20 * 4 - bore * 28, rel=1e-4)
        if format == "3mf":
            assert found.units == "millimeter"


def test_files_hold_the_links_of_a_hand(tmp_path):
    """Components of a link meet at ports of their own meshes; the booleans leave no edges that a file cannot hold."""
    pytest.importorskip("lib3mf")
    hand = design.Assembly(design.chain(palm(), knuckle(), phalanx(), joint(), tip()))
    factors = torch.linspace(0.62, 1.37, len(hand.names), dtype=torch.float64)
    scene = wb.Scene(hand.bodies(factors, points=0), joints=hand.joints(factors))
    still = {j.name: (-1e-3, 1e-3) for j in scene.joints}
    report = export.check(scene, [export.AxleHole(j.name, 0.003) for j in scene.joints], ranges=still)
    for format in ("stl", "3mf"):
        paths = export.write(tmp_path, report, format)  # it refuses files with open meshes
        for path, part, mass in zip(paths, report.parts, hand.shape(factors).masses, strict=False):
            found = trimesh.load(path, force="mesh")
            assert found.is_watertight
            taken = sum(drilled.volume for drilled in part.drilled)
            assert found.volume + taken == pytest.approx(1e9 * mass.volume.item(), rel=1e-4)
            assert part.mesh.edges_unique_length.min() > 1e-4


def test_3mf_is_valid(tmp_path):
    """The reference implementation reads it in its strict mode, without a warning, in mm."""
    lib3mf = pytest.importorskip("lib3mf")
    path = export.write(tmp_path, export.check(robot()), "3mf")[0]
    model = lib3mf.get_wrapper().CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromFile(str(path))
    assert reader.GetWarningCount() == 0
    assert model.GetUnit() == lib3mf.ModelUnit.MilliMeter


def test_the_report():
    base = block("base", (-0.03, -0.01, -0.005), (-0.001, 0.01, 0.005))
    eye = block("eye", (-0.01, 0.0105, -0.005), (0.03, 0.015, 0.005))
    joint = wb.Joint("knuckle", "revolute", "base", "eye", (-0.0055, 0, 0), axis=(0, 1, 0), lower=-0.3, upper=0.3)
    soft = wb.SoftBody("pad", Sphere((0.1, 0.1, 0.1), 0.01), wb.Material(1e4))
    scene = wb.Scene([base, eye, soft], joints=[joint], name="finger")
    text = export.check(scene, [export.AxleHole("knuckle", 0.0025, fastener="M2.5 screw")], density=1000.0).text(
        ["base.stl", "eye.stl"]
    )
    volume = 29 * 20 * 10 - 64 * np.tan(np.pi / 64) * 1.25**2 * 20
    assert f"| base | 29.0 × 20.0 × 10.0 | {volume / 1000:.2f} | {volume / 1000:.1f} |" in text
    assert "| knuckle | M2.5 screw | 2.50 | 25.0 | 2.50 in base, 2.70 in eye |" in text
    assert "- 1 × M2.5 screw, 2.50 mm × 25.0 mm" in text
    assert "Not printed, as they are soft or have no shape: pad." in text
    assert "None of 1 pairs of parts collide." in text
    assert "It can be printed" in text


def test_faults_are_refused_all_at_once_and_written_if_asked(tmp_path):
    scene = plates(0.001, -0.1, 1.0)
    thin = wb.Scene([*scene.rigid, wb.RigidBody("c", Box((1, 1, 1), (1.05, 1.05, 1.0003)))], joints=scene.joints)
    report = export.check(thin)
    assert kinds(report.faults) == {"wall", "collision"} and not report.printable
    with pytest.raises(
        export.PrintError,
        match=r"Part 'c': a wall .*\nParts 'a' and 'b': they collide from hinge = 2\d\.\d° on.*\nnothing was written; use anyway=True",
    ) as error:
        export.write(tmp_path / "parts", report)
    assert len(error.value.faults) == 2
    assert not (tmp_path / "parts").exists()
    paths = export.write(tmp_path / "parts", report, anyway=True)
    assert "**Do not print it yet: 2 faults below.**" in paths[-1].read_text(encoding="utf-8")


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    """Neither in a new folder, which goes, too, nor in one with files of before."""
    report = export.check(robot())
    monkeypatch.setattr(type(report), "text", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export.write(tmp_path / "new", report)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.stl").write_text("before")
    with pytest.raises(ZeroDivisionError):
        export.write(tmp_path / "old", report)
    assert [(p.name, p.read_text()) for p in (tmp_path / "old").iterdir()] == [("a.stl", "before")]


def test_a_file_that_does_not_hold_its_part_is_refused(tmp_path, monkeypatch):
    report = export.check(robot())
    half = report.parts[1].mesh.copy().apply_scale((1, 1, 0.999))
    monkeypatch.setattr(export.files, "_write_stl", lambda path, name, mesh: half.export(path, file_type="stl"))
    with pytest.raises(ValueError, match="the file of the part 'a' holds 2237.76 mm\\^3 instead of 2240 mm\\^3"):
        export.write(tmp_path / "parts", report)
    assert not (tmp_path / "parts").exists()


# bad input


def flat() -> TriangleMesh:
    return TriangleMesh([[0, 0, 0], [0.01, 0, 0], [0, 0.01, 0]], [[0, 1, 2], [0, 2, 1]])


def hinged(*holes, kind: str = "revolute"):
    options = {} if kind in ("fixed", "ball") else {"lower": -0.5, "upper": 0.5}
    return export.check(plates(0.002, kind=kind, **options), holes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: one(wb.RigidBody("f", flat())), r"RigidBody 'f': it cannot be printed: a mesh of it has no volume \(0 mm\^3\); give"),
        (lambda: one(wb.RigidBody("p", wb.shapes.Points([[0, 0, 0.0]], [1.0]), inertia=wb.Inertia(1, (0, 0, 0), (1, 1, 1)))), r"'p': it cannot be printed: no surface is known for a Points"),
        (lambda: export.printed_parts(wb.Scene([wb.RigidBody("n", None, inertia=wb.Inertia(1, (0, 0, 0), (1, 1, 1)))])), r"no rigid body with a shape; there is nothing to print"),
        (lambda: hinged(export.AxleHole("knee", 0.003)), r"AxleHole at 'knee': there is no such joint; the scene has hinge"),
        (lambda: hinged(export.AxleHole("hinge", 0.003), kind="ball"), r"AxleHole at 'hinge': a ball joint has no axis"),
        (lambda: hinged(export.AxleHole("hinge", 0.001)), r"AxleHole at 'hinge' misses the part 'b'; move it"),
        (lambda: hinged(export.TendonChannel("c", [(0, 0, 0), (1, 0, 0)], 0.001)), r"there is no body 'c' with a shape; the scene has a, b"),
        (lambda: one(block(), export.TendonChannel("block", [(-1, 0.01, 0), (1, 0.01, 0)], 0.1)), r"'block': its holes leave nothing of it"),
        (lambda: one(block(), up={"blok": (0, 0, 1)}), r"up: there is no body 'blok'"),
        (lambda: one(block(), up={"block": (0, 0, 0)}), r"up\['block'\] must be three numbers, not all zero, got \[0.0, 0.0, 0.0\]"),
        (lambda: export.AxleHole("h", 0.0), r"AxleHole at 'h': diameter must be a positive number, got 0"),
        (lambda: export.AxleHole("h", 1e-3, -1e-4), r"clearance must not be negative \[m\], got -0.0001"),
        (lambda: export.AxleHole("h", 1e-3, grip=2e-3), r"grip must be smaller than the diameter 0.001 m, got 0.002"),
        (lambda: export.TendonChannel("b", [(0, 0, 0)], 1e-3), r"must have shape \(n, 3\) with n of at least 2, got \(1, 3\)"),
        (lambda: export.TendonChannel("b", [(0, 0, 0), (0, 0, 0)], 1e-3), r"two points that follow one another must differ"),
        (lambda: export.Printer(bed=(0.2, 0.2)), r"Printer: bed must be three positive numbers"),
        (lambda: export.Printer(overhang_angle=90.0), r"overhang_angle must be in \(0, 90\) degrees, got 90"),
        (lambda: export.Printer(wall=-1.0), r"Printer: wall must be a positive number, got -1"),
        (lambda: export.Printer(overhang_share=2.0), r"overhang_share must be in \[0, 1\], got 2"),
        (lambda: export.check(robot(), ranges={"knee": (0, 1)}), r"there is no joint 'knee' that has a range; the scene has hinge"),
        (lambda: export.check(robot(), ranges={"hinge": (1, 0)}), r"ranges\['hinge'\] must be a lower and an upper end"),
        (lambda: export.check(robot(), density=0.0), r"check: density must be positive, got 0"),
        (lambda: export.write("x", export.check(robot()), "obj"), r"format must be 'stl' or '3mf', got 'obj'"),
        (lambda: export.write("x", export.check(wb.Scene([block("a/b"), block("a b")])), anyway=True), r"the part 'a b' has no file name of its own \('a_b.stl'\)"),
    ],
)  # fmt: skip
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_without_manifold3d(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "manifold3d", None)
    with pytest.raises(ImportError, match=r'printed parts need manifold3d: pip install "warpbots\[print\]"'):
        one(block())


def test_the_locale_of_the_process_stays(tmp_path):
    """The library that writes 3MF changes it, after which texts that are not ASCII could not be read."""
    import locale

    cube = wb.RigidBody("cube", Box((0, 0, 0), (0.02, 0.02, 0.02)))
    before = locale.setlocale(locale.LC_ALL)
    report = wb.design.export.check(wb.Scene([cube], joints=[wb.Joint("held", "fixed", None, "cube")]))
    wb.design.export.write(tmp_path / "cube", report, format="3mf")
    assert locale.setlocale(locale.LC_ALL) == before
