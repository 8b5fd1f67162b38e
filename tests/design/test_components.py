"""Components: closed meshes within their cages, hinges that turn as far as they say, and what is refused."""

import dataclasses

import numpy as np
import pytest
import torch
import trimesh

from warpbots.design import (
    Component,
    Hinge,
    Part,
    Section,
    box_component,
    joint,
    knuckle,
    mass_properties,
    palm,
    phalanx,
    star_palm,
    tip,
)

MAKERS = {"palm": palm, "knuckle": knuckle, "joint": joint, "phalanx": phalanx, "tip": tip}
LIBRARY = {name: make() for name, make in MAKERS.items()} | {f"star {n}": star_palm(n) for n in (3, 4, 5, 6)}
ODD = {
    "short joint": joint(Section(9e-3, 7e-3), 14e-3, 6e-3),
    "wide knuckle": knuckle(Section(30e-3, 12e-3), Section(14e-3, 20e-3), 30e-3, 15e-3),
}
HINGES = {k: c for k, c in (LIBRARY | ODD).items() if c.hinge}


def mesh(part: Part) -> trimesh.Trimesh:
    return trimesh.Trimesh(part.vertices, part.faces, process=False)


def volume(part: Part) -> float:
    return mass_properties(torch.as_tensor(part.vertices), torch.as_tensor(part.faces)).volume.item()


@pytest.mark.parametrize("component", (LIBRARY | ODD).values(), ids=(LIBRARY | ODD).keys())
def test_meshes_are_closed_and_within_the_cage(component):
    cage = trimesh.Trimesh(component.cage.handles, component.cage.faces, process=False)
    assert cage.is_watertight and cage.is_winding_consistent
    planes = cage.triangles[:, 0], cage.face_normals  # the cages are convex
    for part, weights in zip(component.parts, component.weights, strict=True):
        own = mesh(part)
        assert own.is_watertight and own.is_winding_consistent and own.volume > 0.0
        assert own.area_faces.min() > 0.0
        heights = np.einsum("vfi,fi->vf", own.vertices[:, None] - planes[0], planes[1])
        assert heights.max() < 1e-12
        np.testing.assert_allclose(weights.numpy() @ component.cage.handles, own.vertices, rtol=0, atol=1e-15)
    for name, port in component.ports.items():
        x = port.rotation[:, 0] * (-1.0 if name == "in" else 1.0)
        middle = component.cage.handles[port.handles[0]]
        assert ((cage.triangles_center - middle) @ x).max() < 1e-12  # x points outwards
        touched = component.parts[-1 if name != "in" else 0]
        on = np.abs((touched.vertices[touched.faces] - middle) @ x).max(axis=1) < 1e-12
        area = mesh(touched).area_faces[on].sum()
        assert area == pytest.approx(np.prod(component.section(name)), rel=1e-12)  # the mesh fills the port
        assert name == "back" or not touched.exposed[on].any()


def test_volumes():
    """A box, prisms, the plates of a hinge, and a phalanx whose cross-sections are between four elliptic arcs."""
    assert volume(LIBRARY["palm"].parts[0]) == pytest.approx(7e-3 * 16e-3 * 32.4e-3, rel=1e-12)
    for n in (3, 4, 5, 6):
        gap, w, h = LIBRARY[f"star {n}"].sizes.values()
        turns = np.exp(1j * np.pi / n * np.arange(2 * n))
        corners = np.cumsum(np.resize([w, gap], 2 * n) * turns)  # sides one after the other
        assert abs(corners[-1]) < 1e-15
        area = 0.5 * (np.conj(corners) * np.roll(corners, -1)).imag.sum()
        assert volume(LIBRARY[f"star {n}"].parts[0]) == pytest.approx(area * h, rel=1e-12)
    clevis, tongue = LIBRARY["joint"].parts
    r, across, width, length, at = 9.8e-3 - 1.2e-3, 26e-3, 26e-3, 20.6e-3, 10.8e-3
    eye = 2 * (r - 0.3e-3) * r + 8 * 0.5 * (r - 0.3e-3) ** 2 * np.sin(np.pi / 8)
    assert volume(clevis) == pytest.approx(width * across * (at - r) + eye * 0.6 * width, rel=1e-12)
    assert volume(tongue) == pytest.approx(width * across * (length - at - r) + eye * (0.4 * width - 0.6e-3), rel=1e-12)
    s = (np.arange(2000) + 0.5) / 2000
    c = 0.3 * np.sin(np.pi * s) ** 2
    exact = 26e-3**2 * 23.4e-3 * (np.arcsin(np.sqrt(c)) * np.sqrt((1 - c) / c)).mean()
    errors = [volume(phalanx(detail=k).parts[0]) / exact - 1 for k in (1, 2, 4)]
    print("phalanx", errors)
    assert abs(errors[2]) < 2e-3
    for coarse, fine in zip(errors, errors[1:], strict=False):
        assert coarse / fine == pytest.approx(4.0, rel=0.15)


def winding(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """How often a mesh winds around points: the sum of solid angles over 4 pi."""
    a, b, c = np.moveaxis(triangles - points[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
    det = np.einsum("pfi,pfi->pf", a, np.cross(b, c))
    dots = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return np.arctan2(det, dots).sum(axis=1) / (2 * np.pi)


def overlap(component: Component, angle: float) -> int:
    """How many points of the surface of one part are inside the other one at an angle."""
    hinge, meshes = component.hinge, [mesh(part) for part in component.parts]
    meshes[1].apply_transform(trimesh.transformations.rotation_matrix(angle, hinge.axis, hinge.position))
    found = 0
    for one, other in (meshes, meshes[::-1]):
        points = np.concatenate([one.vertices, trimesh.sample.sample_surface(one, 150, seed=0)[0]])
        found += int((winding(points, other.triangles) > 0.5).sum())
    return found


@pytest.mark.parametrize("component", HINGES.values(), ids=HINGES.keys())
def test_hinges_turn_until_their_parts_collide(component):
    upper = component.hinge.upper
    assert component.hinge.lower == -upper and 0.5 < upper < 3.0
    for angle in (0.0, 0.5 * upper, -0.7 * upper, upper - 0.01, -upper + 0.01):
        assert overlap(component, angle) == 0, angle
    for angle in (upper + 0.03, -upper - 0.03):
        assert overlap(component, angle) > 0, angle


@pytest.mark.parametrize("component", HINGES.values(), ids=HINGES.keys())
def test_hinges_scale_along_their_axis_alone(component):
    """Distances of all vertices from the axis stay, so what is round stays round; lengths along it are scaled."""
    axis = np.array(component.hinge.axis)
    free = [size for size in component.sizes if size not in component.fixed]
    assert tuple(free) in component.tied
    sizes = np.array([1.7 * v if k in free else v for k, v in component.sizes.items()])
    handles = component.layout @ sizes
    for part, weights in zip(component.parts, component.weights, strict=True):
        moved = weights.numpy() @ handles
        along = part.vertices @ axis
        np.testing.assert_allclose(moved @ axis, 1.7 * along, rtol=0, atol=1e-16)
        np.testing.assert_allclose(
            moved - np.outer(moved @ axis, axis), part.vertices - np.outer(along, axis), rtol=0, atol=1e-16
        )
    across = component.parts[1].vertices - np.array(component.hinge.position)
    across -= np.outer(across @ axis, axis)
    distance = np.linalg.norm(across, axis=1)
    values, count = np.unique(distance.round(9), return_counts=True)
    assert count.max() >= 27 and values[count.argmax()] > 1e-3  # the eye of the tongue is round


def test_star_palms_have_equal_ports_around_their_axis():
    for n in (3, 4, 5, 6):
        component = LIBRARY[f"star {n}"]
        gap, w, _ = component.sizes.values()
        r = 0.5 * w / np.tan(np.pi / n) + 0.5 * gap / np.sin(np.pi / n)
        for k in range(n):
            port = component.ports[f"finger-{k}"]
            direction = [np.cos(2 * np.pi * k / n), np.sin(2 * np.pi * k / n), 0.0]
            np.testing.assert_allclose(port.rotation[:, 0], direction, rtol=0, atol=1e-15)
            np.testing.assert_allclose(component.cage.handles[port.handles[0]], np.multiply(r, direction), atol=1e-16)
    assert not LIBRARY["star 3"].fixed


def box(**changes) -> Component:
    """A block of 2 x 1 x 1 cm, with something else than it should have."""
    part = Part.of_mesh(*_cube(0.02, 0.01))
    arguments = {"length": 0.02, "start": Section(0.01, 0.01), "end": Section(0.01, 0.01), "parts": (part,)} | changes
    return box_component("block", **arguments)


def _cube(length: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    cube = trimesh.creation.box((length, width, width))
    return cube.vertices + [length / 2, 0, 0], cube.faces


def test_a_part_turns_with_its_frame():
    vertices, faces = _cube(0.02, 0.01)
    vertices = vertices + [0.0, 0.001, 0.002]
    turned = Part.of_mesh(vertices, faces, hidden=[(0, 0.0)]).moved(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]))
    np.testing.assert_array_equal(turned.vertices, np.stack([-vertices[:, 1], vertices[:, 0], vertices[:, 2]], axis=1))
    assert turned.exposed.sum() == 10 and turned.vertices[turned.faces[~turned.exposed]][..., 1].max() == 0.0


def test_bad_parts():
    vertices, faces = _cube(0.02, 0.01)
    with pytest.raises(ValueError, match=r"Part: its mesh is open at the edge of vertices \d and \d.*close it"):
        Part.of_mesh(vertices, faces[1:])
    with pytest.raises(ValueError, match="Part: its mesh is open"):
        Part.of_mesh(vertices, np.concatenate([faces[:1, ::-1], faces[1:]]))
    with pytest.raises(ValueError, match=r"Part: its mesh encloses -2e-06 m\^3, which must be positive"):
        Part.of_mesh(vertices, faces[:, ::-1])
    with pytest.raises(ValueError, match=r"Part: its mesh encloses 0 m\^3"):
        Part.of_mesh(vertices * [1, 1, 0], faces)
    with pytest.raises(ValueError, match=r"faces must name three of 8 vertices each, got an array \(12, 3\)"):
        Part.of_mesh(vertices, faces + 1)
    with pytest.raises(ValueError, match=r"vertices must be finite numbers of shape \(n, 3\), got shape \(8, 2\)"):
        Part.of_mesh(vertices[:, :2], faces)
    with pytest.raises(ValueError, match=r"exposed must have shape \(12,\), got \(3,\)"):
        Part(vertices, faces, np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="5 contact points cannot be spread over 0 exposed faces"):
        Part(vertices, faces, np.zeros(12, dtype=bool), 5)
    with pytest.raises(ValueError, match="Section: width and height must be positive, got 0 and 0.1 m"):
        Section(0.0, 0.1)


def test_bad_components():
    assert box().name == "block"
    large = Part.of_mesh(*_cube(0.03, 0.01))
    with pytest.raises(ValueError, match="'block': Cage: 4 of 8 points are outside of it.*enlarge the cage"):
        box(parts=(large,))
    with pytest.raises(ValueError, match=r"'block': its length must be positive \[m\], got -0.02"):
        box(length=-0.02)
    with pytest.raises(ValueError, match="along must be 'width', 'height' or None, got 'length'"):
        box(along="length")
    with pytest.raises(ValueError, match="joins must name 'in', 'out' or 'back', got 'side'"):
        box(joins=("in", "side"))
    with pytest.raises(ValueError, match="'block': its frame must be that of its port 'in'"):
        box(centered=True, parts=(Part.of_mesh(_cube(0.02, 0.01)[0] - [0.01, 0, 0], _cube(0.02, 0.01)[1]),))
    hinge = Hinge((0.01, 0.0, 0.0), (0.0, 0.0, 1.0), -1.0, 1.0)
    with pytest.raises(ValueError, match="a component with a hinge must have two parts, got 1"):
        box(hinge=hinge, along="height")
    part = box().parts[0]
    with pytest.raises(ValueError, match="a component without a hinge must have one part, got 2"):
        box(parts=(part, part))
    box(hinge=hinge, along="height", parts=(part, part))
    with pytest.raises(ValueError, match=r"its length moves handles across the axis of its hinge.*`fixed`"):
        box(hinge=hinge, parts=(part, part))
    with pytest.raises(ValueError, match=r"its in.width moves handles across the axis"):
        box(hinge=hinge, along="width", parts=(part, part))
    outside = dataclasses.replace(hinge, position=(0.03, 0.0, 0.0))
    with pytest.raises(ValueError, match=r"the axis of its hinge passes through \(0.03, .* outside of its cage"):
        box(hinge=outside, along="height", parts=(part, part))
    with pytest.raises(ValueError, match="axis must be a direction"):
        dataclasses.replace(hinge, axis=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="lower < 0 < upper must hold .* got 1 and 1"):
        dataclasses.replace(hinge, lower=1.0)
    with pytest.raises(ValueError, match="'phalanx': it has no hinge to lock"):
        LIBRARY["phalanx"].locked()
    with pytest.raises(KeyError, match="it has no port 'left'; its ports are in, out"):
        LIBRARY["phalanx"].section("left")


def test_bad_ports():
    own = LIBRARY["phalanx"]
    port = own.ports["out"]

    def with_port(**changes):
        return dataclasses.replace(own, ports=own.ports | {"out": dataclasses.replace(port, **changes)})

    with pytest.raises(ValueError, match="'phalanx': handle 5 of port 'out' must be half of 'out.width' and"):
        with_port(handles=(9, 1, 5, 3, 7))
    with pytest.raises(ValueError, match="port 'out' must have five of the handles 0 to 13, got"):
        with_port(handles=(9, 1, 3, 5))
    with pytest.raises(ValueError, match="port 'out' must have five of the handles 0 to 13, got"):
        with_port(handles=(9, 1, 3, 5, 14))
    with pytest.raises(ValueError, match="handle 1 of port 'out' must be half of 'in.width'"):
        with_port(width="in.width")
    with pytest.raises(ValueError, match="it has no size 'girth'; its sizes are length, in.width"):
        with_port(width="girth")
    with pytest.raises(ValueError, match="the rotation of port 'out' must be a rotation matrix"):
        with_port(rotation=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="it has no size 'girth'"):
        dataclasses.replace(own, fixed=frozenset({"girth"}))
    with pytest.raises(ValueError, match=r"its layout must have shape \(k, 3, 5\), got \(14, 3, 4\)"):
        dataclasses.replace(own, layout=own.layout[:, :, :4])
    split = own.faces.copy()  # the port as two triangles, with the middle left over
    split = np.array([f for f in split if 9 not in f] + [(1, 3, 7), (1, 7, 5)])
    with pytest.raises(ValueError, match="port 'out' must consist of four faces of the cage"):
        dataclasses.replace(own, faces=split)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: joint(axis_at=19e-3), "joint: there is no room for eyes of 2 mm .* got 19 mm of 20.6 mm"),
        (lambda: joint(axis_at=-1e-3), "joint: there is no room for eyes .* at least 3.2 mm from both ends"),
        (lambda: joint(Section(26e-3, 3e-3)), "joint: there is no room for eyes .* widths of 3 and 3 mm"),
        (lambda: joint(Section(2e-3, 26e-3)), "joint: its size along the axis must be at least 3 mm .* got 2 mm"),
        (
            lambda: knuckle(Section(16e-3, 2e-3), Section(26e-3, 2e-3)),
            "knuckle: its size along the axis must be at least 3 mm",
        ),
        (lambda: knuckle(length=0.0), r"knuckle: length must be positive \[m\], got 0"),
        (lambda: phalanx(length=-1.0), r"phalanx: length must be positive \[m\], got -1"),
        (lambda: tip(detail=0), "tip: detail must be an integer of at least 1, got 0"),
        (lambda: palm(detail=1.5), "palm: detail must be a whole number, got 1.5"),
        (lambda: star_palm(2), "star_palm: fingers must be an integer of at least 3, got 2; `palm` is for 1 and 2"),
        (lambda: star_palm(gap=0.0), r"star_palm: gap must be positive \[m\], got 0"),
        (lambda: star_palm(detail=-1), "star_palm: detail must be an integer of at least 0, got -1"),
        (lambda: tip(points=-1), "Part: -1 contact points cannot be spread over"),
    ],
)
def test_sizes_that_do_not_fit(make, message):
    with pytest.raises(ValueError, match=message):
        make()
