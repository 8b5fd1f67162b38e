"""Robots assembled of components: free sizes, merged handles, links, and their shape as parameters of a motion."""

import numpy as np
import pytest
import torch
import trimesh
from hands import PARTS, finger, of, three_fingers, two_fingers

import warpbots as wb
from warpbots.design import (
    Assembly,
    Node,
    Section,
    chain,
    joint,
    knuckle,
    palm,
    phalanx,
    star_palm,
    tip,
)

TURN = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])

HANDS = {"finger": finger(), "two fingers": two_fingers(), "three fingers": three_fingers()}


def factors(hand: Assembly, rng: np.random.Generator, low: float = 0.6, high: float = 1.6) -> torch.Tensor:
    return torch.as_tensor(rng.uniform(low, high, len(hand.names)))


every = pytest.mark.parametrize("hand", HANDS.values(), ids=HANDS.keys())


def test_free_parameters_are_those_of_the_paper():
    """Xu et al. 2021, table III: 9 of the finger and 17 of the hand with two."""
    assert finger().names == (
        "phalanx-0.length", "joint-1.width", "phalanx-1.length", "joint-2.width", "phalanx-2.length",
        "phalanx-2|tip.width", "phalanx-2|tip.height", "tip.out.width", "tip.out.height",
    )  # fmt: skip
    own = ("phalanx-{0}.length", "joint-{1}.width", "phalanx-{1}.length", "phalanx-{1}|tip-{2}.width",
           "phalanx-{1}|tip-{2}.height", "tip-{2}.length", "tip-{2}.out.width", "tip-{2}.out.height")  # fmt: skip
    both = [name.format(2 * k, 2 * k + 1, k) for k in (0, 1) for name in own]
    assert two_fingers().names == ("palm.length", *both) and len(both) == 16
    assert three_fingers().names[0] == "palm.gap" and len(three_fingers().names) == 25
    free = of("palm", "knuckle", *3 * ("joint", "phalanx"), "tip")
    assert set(Assembly(free).names) - set(finger().names) == {
        "palm.length", "palm.in.width", "palm.in.height", "tip.length"
    }  # fmt: skip


def test_sections_follow_from_what_joins():
    """Axles fix the width of a knuckle and the height of a joint, and with these those of all that joins them."""
    root = Section(26e-3, 26e-3)
    alone = Assembly(of("phalanx", "phalanx"))
    assert "phalanx-0|phalanx-1.width" in alone.names and len(alone.names) == 2 + 3 * 2
    assert Assembly(chain(phalanx(), joint(), phalanx())).names == (
        "phalanx-0.length", "phalanx-0.in.width", "phalanx-0.in.height", "joint.width", "phalanx-1.length",
        "phalanx-1.out.width", "phalanx-1.out.height",
    )  # fmt: skip
    assert Assembly(chain(knuckle(root), joint())).names == ()
    hand = Assembly(chain(joint(), phalanx()))
    shape = hand.shape(torch.tensor([2.0, *(1.0 for _ in hand.names[1:])], dtype=torch.float64))
    assert hand.names[0] == "joint.width"
    assert np.ptp(shape.parts[1][-1].numpy()[:, 1]) == pytest.approx(52e-3, rel=1e-12)  # the phalanx is as wide


def in_the_world(hand, shape, n, part, points):
    """Points of a component in the world, with all joints at zero."""
    poses = []
    for link, origin in zip(hand.links, shape.origins, strict=True):
        R, x = poses[link.parent] if poses else (torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
        poses.append((R @ link.rotation, x + R @ origin))
    place = hand._places[n][part]
    R, x = poses[place.link]
    return x + (shape.component_origins[n][part] + points @ place.rotation.T) @ R.T


@every
def test_handles_merge_where_components_join(hand, rng):
    """And so do the points of both meshes on the port: to rounding."""
    for _ in range(3):
        shape = hand.shape(factors(hand, rng, 0.3, 3.0))
        for n, own in enumerate(hand.instances):
            if own.port is None:
                continue
            parent, port = hand.instances[own.parent].component, own.component.ports["in"]
            there = in_the_world(hand, shape, own.parent, -1, shape.handles[own.parent][list(own.port.handles)])
            here = in_the_world(hand, shape, n, 0, shape.handles[n][list(port.handles)])
            torch.testing.assert_close(there, here, rtol=0, atol=1e-15)
            width, height = own.component.section("in")
            on = rng.uniform(-0.5, 0.5, (20, 2)) * [width, height]
            on = np.concatenate([np.zeros((20, 1)), on], axis=1)
            middle = parent.cage.handles[own.port.handles[0]]
            outer = parent.cage.weights(torch.as_tensor(middle + on @ own.port.rotation.T)) @ shape.handles[own.parent]
            inner = own.component.cage.weights(torch.as_tensor(on)) @ shape.handles[n]
            torch.testing.assert_close(
                in_the_world(hand, shape, own.parent, -1, outer),
                in_the_world(hand, shape, n, 0, inner),
                rtol=0,
                atol=1e-15,
            )


@every
def test_axles_keep_their_size(hand, rng):
    """In any shape, vertices behind a hinge keep their distance from its axis."""
    shape = hand.shape(factors(hand, rng, 0.3, 3.0))
    turning = 0
    for link, parts in zip(hand.links, shape.parts, strict=True):
        for (n, p), vertices in zip(link.parts, parts, strict=True):
            hinge = hand.instances[n].component.hinge
            if hinge is not None and p == 1:
                rest = hand.instances[n].component.parts[1].vertices - np.array(hinge.position)
                across = np.eye(3) - np.outer(hinge.axis, hinge.axis)
                np.testing.assert_allclose(vertices.numpy() @ across, rest @ across, rtol=0, atol=1e-16)
                turning += 1
    assert turning == len(hand.links) - 1


@every
def test_links_weigh_what_trimesh_says_of_their_meshes(hand, rng):
    shape = hand.shape(factors(hand, rng))
    for k, link in enumerate(hand.links):
        meshes = [
            trimesh.Trimesh(v.numpy(), hand.instances[n].component.parts[p].faces, process=False)
            for (n, p), v in zip(link.parts, shape.parts[k], strict=True)
        ]
        whole = trimesh.util.concatenate(meshes)
        whole.density = 1000.0
        found = shape.masses[k]
        assert found.mass.item() == pytest.approx(whole.mass, rel=1e-12)
        np.testing.assert_allclose(found.center, whole.center_mass, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.inertia, whole.moment_inertia, rtol=0, atol=1e-12 * whole.moment_inertia.max())
        exposed = sum(
            mesh.area_faces[hand.instances[n].component.parts[p].exposed].sum()
            for mesh, (n, p) in zip(meshes, link.parts, strict=True)
        )
        assert shape.contact_areas[k].sum().item() == pytest.approx(exposed, rel=1e-12)


def scene(hand: Assembly, shape: torch.Tensor | None = None, base: wb.Joint | None = None, **pose) -> wb.Simulation:
    """A hand above a floor, with a torque motor on every hinge."""
    joints = hand.joints(shape, damping=1e-3, **pose)
    motors = [wb.actuators.Torque(own.name, own.name, 0.1) for own in joints]
    contacts = [wb.Contact(link.name, "floor", 1e6, 1e3, 0.5, 1e4) for link in hand.links]
    bodies = hand.bodies(shape, **pose)
    base = base or wb.Joint("base", "fixed", None, hand.links[0].name, **pose)
    made = wb.Scene(bodies, motors, [wb.floor(0.0)], joints=[base, *joints], contacts=contacts)
    return wb.Simulation(made, wb.Articulated(), 2e-3, 1)


def bases() -> dict[str, tuple[Assembly, wb.Joint | None, dict]]:
    """Hands on a wall, on a slide and in the air, whose frames are turned and off the origin of their joint."""
    half = {"position": (0.02, 0.01, 0.03), "rotation": TURN}
    tilted = trimesh.transformations.rotation_matrix(0.4, (1.0, 2.0, 0.5))[:3, :3]
    slide = wb.Joint("base", "prismatic", None, "palm", axis=(0, 0, 1), position=(0.01, 0.02, 0.0))
    return {
        "finger": (HANDS["finger"], None, half),
        "two fingers": (HANDS["two fingers"], slide, half),
        "three fingers": (
            HANDS["three fingers"], wb.Joint("base", "free", None, "palm", position=(0.0, 0.0, 0.05)),
            {"position": (0.0, 0.0, 0.05), "rotation": tilted},
        ),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:.* deep in 'floor'")
@pytest.mark.parametrize("case", bases().values(), ids=bases().keys())
def test_parameters_are_those_of_a_scene_that_is_built_in_the_new_shape(case, rng):
    """Masses, contact points, joint frames, and the motion on a floor."""
    hand, base, pose = case
    new = factors(hand, rng, 0.7, 1.5)
    sim, anew = scene(hand, None, base, **pose), scene(hand, new, base, **pose)
    found = hand.model_parameters(sim, hand.shape(new))
    assert set(found) == {
        "mass", "center_of_mass", "inertia", "joint_position", "contact_point", "contact_area", "limit_stiffness",
        "limit_damping",
    }  # fmt: skip
    for name in anew.parameters():
        own = anew.parameter(name)
        value = found.get(name, sim.parameter(name))
        torch.testing.assert_close(value, own, rtol=1e-9, atol=1e-12 * own.abs().max().item(), msg=name)
        if name in found:
            assert (sim.parameter(name) - own).abs().max() > 0.01 * own.abs().max(), name
    control = torch.as_tensor(rng.uniform(-0.6, 0.2, (60, sim.channels)))
    a, b = sim.rollout(control, 60, **found).final, anew.rollout(control, 60).final
    torch.testing.assert_close(a.q, b.q, rtol=0, atol=1e-8)
    assert (b.q - anew.state().q).abs().max() > 0.1
    assert anew.sense(b).contact_force.abs().max() > 1e-2


def test_gradients_of_the_whole_chain(rng):
    """From sizes through handles, meshes, masses and contact to motion: central differences, 1e-6, and Taylor."""
    hand = HANDS["finger"]
    sim = scene(hand, position=(0.0, 0.0, 0.03), rotation=TURN)
    start = factors(hand, rng, 0.8, 1.2)
    control = torch.as_tensor(rng.uniform(-0.6, 0.0, (60, 4)))
    weights = torch.as_tensor(rng.normal(size=4))

    def loss(x: torch.Tensor) -> torch.Tensor:
        shape = hand.shape(x)
        final = sim.rollout(control, 60, **hand.model_parameters(sim, shape)).final
        link, end = hand.carried("tip", [(22.1e-3, 0.0, 0.0)], shape)
        return final.q[0] @ weights + 0.1 * final.qd.sum() + 10.0 * end.sum()

    leaf = start.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf)
    state = sim.rollout(control, 60, **hand.model_parameters(sim, hand.shape(start))).final
    assert sim.sense(state).contact_force.abs().max() > 1e-2
    for axis in (*np.eye(len(start)), rng.normal(size=len(start))):
        d, h = torch.as_tensor(axis), 1e-5
        with torch.no_grad():
            up, down = loss(start + h * d).item(), loss(start - h * d).item()
        slope = (gradient @ d).item()
        print(f"{slope:.6e}, off by {abs((up - down) / (2 * h) / slope - 1):.1e}")
        assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6 * gradient.abs().max().item())
    with torch.no_grad():
        here = loss(start).item()
        rest = [abs(loss(start + h * d).item() - here - h * slope) for h in (5e-4, 2.5e-4, 1.25e-4)]
    orders = np.log2(np.array(rest[:-1]) / rest[1:])
    print("Taylor", rest, orders)
    assert orders == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("base", [None, wb.Joint("base", "free", None, "palm", rotation=TURN)], ids=["none", "free"])
def test_a_hand_that_floats_has_the_frame_of_its_new_centre(base, rng):
    """Its coordinates are those of a scene that is built in the new shape, at the start and after it has turned."""
    hand = Assembly(of("palm", "knuckle", "joint", "phalanx", "tip"))  # the length of its palm is free
    new = factors(hand, rng, 0.7, 1.5)
    pose = {"position": (0.02, 0.01, 0.3), "rotation": TURN}

    def made(shape: torch.Tensor | None = None) -> wb.Simulation:
        joints = hand.joints(shape, damping=1e-3, **pose)
        motors = [wb.actuators.Torque(own.name, own.name, 0.1) for own in joints]
        bodies = hand.bodies(shape, points=0, **pose)
        return wb.Simulation(
            wb.Scene(bodies, motors, joints=[*filter(None, [base]), *joints]), wb.Articulated(), 2e-3, 1
        )

    sim, anew = made(), made(new)
    found = hand.model_parameters(sim, hand.shape(new))
    for name in anew.parameters():
        own, value = anew.parameter(name), found.get(name, sim.parameter(name))
        torch.testing.assert_close(value, own, rtol=1e-9, atol=1e-12 * own.abs().max().item(), msg=name)
    assert (found["body_position"] - sim.parameter("body_position")).abs().max() > 1e-4
    control = torch.as_tensor(rng.uniform(-0.6, 0.2, (30, sim.channels)))
    a, b = sim.rollout(control, 30, **found).final, anew.rollout(control, 30).final
    torch.testing.assert_close(a.q, b.q, rtol=0, atol=1e-8)


@pytest.mark.parametrize("given", [{}, {"limit_stiffness": 40.0}, {"limit_damping": 0.03}], ids=str)
def test_open_limits_follow_from_the_inertia_beyond_them(given, rng):
    """On a slide by the mass, at hinges by moments; what a joint gives stays, and gradients are central differences."""
    hand = HANDS["two fingers"]
    slide = wb.Joint("base", "prismatic", None, "palm", axis=(0, 0, 1), armature=0.02, lower=-0.1, upper=0.1, **given)

    def made(shape: torch.Tensor | None = None) -> wb.Simulation:
        joints = hand.joints(shape, armature=1e-5, **given)
        return wb.Simulation(wb.Scene(hand.bodies(shape, points=0), joints=[slide, *joints]), wb.Articulated(), 2e-3, 1)

    sim, new = made(), factors(hand, rng, 0.7, 1.5)
    open_ones = {"limit_stiffness", "limit_damping"} - set(given)

    def limits(x: torch.Tensor) -> torch.Tensor:
        found = hand.model_parameters(sim, hand.shape(x))
        return torch.cat([found[name][0] for name in sorted(open_ones)])

    anew = made(new)
    expected = torch.cat([anew.parameter(name)[0] for name in sorted(open_ones)])
    torch.testing.assert_close(limits(new), expected, rtol=1e-9, atol=0)
    for name in given:
        kept = hand.model_parameters(sim, hand.shape(new))[name]
        torch.testing.assert_close(kept, torch.full_like(kept, given[name]), rtol=1e-15, atol=0)
    leaf, d, h = new.clone().requires_grad_(), torch.as_tensor(rng.normal(size=len(new))), 1e-6
    weights = 1.0 / expected
    (slope,) = torch.autograd.grad(limits(leaf) @ weights, leaf)
    quotient = (limits(new + h * d) - limits(new - h * d)) @ weights / (2 * h)
    assert (slope @ d).item() == pytest.approx(quotient.item(), rel=1e-7)


def test_links_and_names():
    """A link is what hinges that turn carry; a locked hinge, and a part of a chain, belong to the link before it."""
    hand = finger()
    assert [link.name for link in hand.links] == ["palm", "knuckle", "joint-0", "joint-1", "joint-2"]
    assert [link.parent for link in hand.links] == [-1, 0, 1, 2, 3]
    assert [len(link.parts) for link in hand.links] == [2, 2, 3, 3, 3]
    locked = Assembly(chain(palm(), PARTS["knuckle"].locked(), *(PARTS[name] for name in ("joint", "phalanx", "tip"))))
    assert [link.name for link in locked.links] == ["palm", "joint"]
    free = Assembly(of("palm", "knuckle", "joint", "phalanx", "tip"))
    assert locked.names == free.names
    a, b = locked.shape(locked.rest), free.shape(free.rest)
    torch.testing.assert_close(a.origins[1], b.origins[1] + b.origins[2], rtol=0, atol=1e-16)
    assert a.masses[0].mass.item() == pytest.approx((b.masses[0].mass + b.masses[1].mass).item(), rel=1e-14)
    assert len(a.contact_points[0]) == 4 + 6 + 8 + 8
    turned = Assembly(of("knuckle", "tip"))
    assert [link.name for link in turned.links] == ["knuckle-base", "knuckle"]
    assert [own.parent for own in turned.joints()] == ["knuckle-base"]
    named = Assembly(chain(Node(palm(), name="base"), Node(knuckle(), name="swing"), tip()))
    assert [link.name for link in named.links] == ["base", "swing"] and "base.length" in named.names
    several = two_fingers()
    assert [link.name for link in several.links][4:] == ["knuckle-1", "joint-2", "joint-3"]
    assert [link.parent for link in several.links] == [-1, 0, 1, 2, 0, 4, 5]


def test_hinges_become_joints():
    hand = finger()
    bodies, joints = hand.bodies(), hand.joints(damping=0.5)
    assert [own.name for own in joints] == [body.name for body in bodies[1:]]
    for own, body in zip(joints, bodies[1:], strict=True):
        assert own.position == body.position and own.rotation == body.rotation
    knuckle_hinge, joint_hinge = (PARTS[name].hinge for name in ("knuckle", "joint"))
    assert joints[0].axis == knuckle_hinge.axis and joints[1].axis == joint_hinge.axis
    for own, hinge in zip(joints, (knuckle_hinge, joint_hinge, joint_hinge, joint_hinge), strict=True):
        assert np.ravel([own.lower, own.upper, own.damping]).tolist() == [-hinge.upper, hinge.upper, 0.5]
    assert all(own.upper is None for own in hand.joints(limits=False))
    x = [own.position[0] for own in joints]
    middle = 3.5e-3 + 27.5e-3
    assert x == pytest.approx([3.5e-3 + 11.5e-3, *(middle + 10.8e-3 + k * 44e-3 for k in range(3))], abs=1e-15)


def test_the_end_of_a_finger_moves_with_it(rng):
    hand = finger()
    new = factors(hand, rng)
    link, end = hand.carried("tip", [(22.1e-3, 0.0, 13e-3)], hand.shape(new))
    f = dict(zip(hand.names, new.tolist(), strict=True))
    length = 20.6e-3 - 10.8e-3 + 23.4e-3 * f["phalanx-2.length"] + 22.1e-3
    assert link == "joint-2"
    np.testing.assert_allclose(end[0], [length, 0.0, 13e-3 * f["tip.out.height"]], rtol=0, atol=1e-15)


def test_a_design_without_contact_in_several_worlds(rng):
    """Masses and frames of joints are those of the design in every world."""
    hand = finger()
    made = wb.Scene(hand.bodies(points=0), [wb.actuators.Torque("m", "joint-1", 0.1)], joints=hand.joints())
    sim = wb.Simulation(made, wb.Articulated(), 2e-3, 1, worlds=2)
    found = hand.model_parameters(sim, hand.shape(factors(hand, rng)))
    inertial = {"mass", "center_of_mass", "inertia", "limit_stiffness", "limit_damping"}
    assert set(found) == inertial | {"joint_position", "body_position"}  # its palm floats
    assert all(len(value) == 2 and torch.equal(value[0], value[1]) for value in found.values())


@pytest.mark.parametrize(("n", "root"), [(2, palm()), (3, star_palm(3)), (5, star_palm(5))])
def test_stiff_hands_have_the_symmetry_of_their_palm(n, root):
    """All hinges locked, a hand is one body; its fingers are turned copies of the first one."""
    finger = chain(*(PARTS[name].locked() for name in ("knuckle", "joint")), PARTS["phalanx"], PARTS["tip"])
    ports = ("out", "back") if n == 2 else [f"finger-{k}" for k in range(n)]
    hand = Assembly(Node(root, dict.fromkeys(ports, finger)))
    assert [link.name for link in hand.links] == ["palm"] and not hand.joints()
    shape = hand.shape(hand.rest)
    first = [v.numpy() for v in shape.parts[0][1:7]]  # after the palm: two halves of knuckle and joint, phalanx, tip
    _, end = hand.carried("tip-0", [(22.1e-3, 2e-3, 13e-3)], shape)
    reach = root.cage.handles[root.ports[ports[0]].handles[0], 0] + 27.5e-3 + 20.6e-3 + 23.4e-3 + 22.1e-3
    np.testing.assert_allclose(end[0], [reach, 2e-3, 13e-3], rtol=0, atol=1e-15)
    for k in range(n):
        turn = trimesh.transformations.rotation_matrix(2 * np.pi * k / n, (0, 0, 1))[:3, :3]
        for a, b in zip(first, shape.parts[0][1 + 6 * k :], strict=False):
            np.testing.assert_allclose(b, a @ turn.T, rtol=0, atol=1e-15)
        name, own = hand.carried(f"tip-{k}", [(22.1e-3, 2e-3, 13e-3)], shape)
        np.testing.assert_allclose(own[0], turn @ end[0].numpy(), rtol=0, atol=1e-15)
        assert name == "palm"
    mass = shape.masses[0]
    assert mass.center[:2].abs().max() < 1e-12 and mass.center[2].abs() < 1e-5  # curved faces lean to one side
    if n > 2:
        assert mass.inertia[0, 0].item() == pytest.approx(mass.inertia[1, 1].item(), rel=1e-9)
