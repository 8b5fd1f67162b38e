"""Pairs of geoms that touch, and their friction: MuJoCo's own list, for random robots."""

import itertools

import mujoco
import numpy as np
import pytest

import warpbots as wb
from warpbots.scene import parts_of

WORLD = """<geom name="floor" type="plane" size="1 1 1" {}/><geom name="rock" pos="0 0 90" size=".11" {}/>"""


def radius(number):
    """A radius by which a ball is recognised [m]."""
    return 0.2 + 0.001 * number


class Generator:
    """Random robots: trees with static, welded and empty bodies, and geoms with random bits, friction and priority."""

    def __init__(self, seed):
        self.rng, self.geoms, self.bodies = np.random.default_rng(seed), 0, 0

    def one(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def words(self):
        words = f'friction="{self.one(0.2, 0.2, 0.6, 1.0)} .005 .0001"'
        words += self.one("", "", ' condim="1"') + self.one("", "", ' priority="1"')
        return words + self.one(
            "", "", ' contype="0"', ' contype="2"', ' conaffinity="0"', ' contype="4" conaffinity="6"'
        )

    def geom(self):
        self.geoms += 1
        place = " ".join(f"{x:.3f}" for x in self.rng.uniform(-30, 30, 3))
        return f'<geom name="g{self.geoms}" size="{radius(self.geoms)}" pos="{place}" {self.words()}/>'

    def body(self, depth):
        self.bodies += 1
        name = f"b{self.bodies}"
        joint = self.one(
            '<joint axis="1 0 0"/>', '<joint type="slide"/>', '<joint axis="1 0 0"/><joint axis="0 1 0"/>', ""
        )
        joint = self.one("<freejoint/>", joint) if depth == 0 else joint
        inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>' if joint else ""
        geoms = "".join(self.geom() for _ in range(self.rng.integers(4)))
        children = "".join(self.body(depth + 1) for _ in range(self.rng.integers(3) if depth < 3 else 0))
        return f'<body name="{name}">{joint}{inertial}{geoms}{children}</body>'

    def robot(self):
        trees = "".join(self.body(0) for _ in range(2))
        named = [f"b{k + 1}" for k in range(self.bodies)]
        excludes = [
            f'<exclude body1="{a}" body2="{b}"/>'
            for a, b in itertools.combinations(named, 2)
            if self.rng.random() < 0.1
        ]
        flag = self.one("", "", '<option><flag filterparent="disable"/></option>')
        world = WORLD.format(self.words(), self.words())
        return f"<mujoco>{flag}<worldbody>{world}{trees}</worldbody><contact>{''.join(excludes)}{{}}</contact></mujoco>"


def in_mujoco(text):
    """Friction of all contacts that MuJoCo computes if all geoms are near, by the names of geoms; 0 for condim 1."""
    model = mujoco.MjModel.from_xml_string(text)
    model.geom_margin[:] = model.body_margin[:] = model.pair_margin[:] = 1e3
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    names = [model.geom(g).name for g in range(model.ngeom)]
    return {frozenset(names[g] for g in c.geom): float(c.friction[0]) * (c.dim > 1) for c in data.contact}


def in_scene(scene):
    """The same for the pairs of a built scene; geoms of bodies are recognised by the radii of their balls."""
    model = wb.Articulated().build(scene, 1, "cpu")
    topology, bodies = model.contact_topology, {b.name: b for b in scene.rigid}
    group, solid, friction = topology.group_body.numpy(), model.solids.body.numpy(), model.contact_friction.numpy()[0]
    number = {round(radius(k), 6): f"g{k}" for k in range(1, 200)}
    obstacles = [o.name for o in scene.obstacles]

    def balls(body):
        return [number[round(part.radius, 6)] for part in parts_of(bodies[body].shape)]

    found = {}
    for g, s, law in zip(*(getattr(topology, f"pair_{n}").numpy() for n in ("group", "solid", "law")), strict=True):
        contact = scene.contacts[law]
        name = contact.solid
        others = [name] if solid[s] < 0 else balls(model.robot.bodies[solid[s]])
        assert solid[s] >= 0 or name in obstacles
        for a, b in itertools.product(balls(model.robot.bodies[group[g]]), others):
            mu = float(friction[law])
            assert found.setdefault(frozenset((a, b)), mu) == mu
    return found


@pytest.mark.parametrize("seed", range(12))
def test_geoms_touch_that_touch_in_mujoco(tmp_path, heard, seed):
    generator = Generator(seed)
    text = generator.robot().format("")
    (tmp_path / "robot.xml").write_text(text)
    expected = in_mujoco(text)
    found = in_scene(wb.robots.load(tmp_path / "robot.xml", contact_points=200))
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-6)
    assert "contact of" not in heard.text


@pytest.mark.parametrize("seed", range(12, 18))
def test_explicit_pairs_touch_as_in_mujoco(tmp_path, seed):
    """Pairs of any geoms with bits, also of neighbours and of excluded bodies."""
    generator = Generator(seed)
    text = generator.robot()
    model = mujoco.MjModel.from_xml_string(text.format(""))
    bits = [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]
    pairs = [
        f'<pair geom1="{model.geom(a).name}" geom2="{model.geom(b).name}" friction=".45 .45 .1 .1 .1" condim="{generator.one(1, 3)}"/>'
        for a, b in itertools.combinations(bits, 2)
        if model.geom_bodyid[a] != model.geom_bodyid[b] and generator.rng.random() < 0.1
    ]
    text = text.format("".join(pairs))
    (tmp_path / "robot.xml").write_text(text)
    expected, moving = in_mujoco(text), model.body_weldid[model.geom_bodyid] != 0
    moves = {model.geom(g).name for g in range(model.ngeom) if moving[g]}
    expected = {ends: mu for ends, mu in expected.items() if ends & moves}
    assert in_scene(wb.robots.load(tmp_path / "robot.xml", contact_points=200)) == pytest.approx(expected, rel=1e-6)


DRAWER = """<mujoco><worldbody><body name="cabinet"><geom type="box" size=".02 .2 .2" pos="{} 0 0"/>
  <body name="rail">{}<body name="drawer"><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="2"/></body></body>
  </body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "rail", ["", '<inertial mass=".1" pos="0 0 0" diaginertia="1 1 1"/><joint type="slide" axis="0 1 0"/>']
)
def test_neighbours_that_overlap_are_named_and_others_touch(tmp_path, heard, rail):
    """A drawer and the static wall in front of it, also with an empty moving body between; MuJoCo lets all touch."""
    path = tmp_path / "robot.xml"
    path.write_text(DRAWER.format(0.3, rail))
    scene = wb.robots.load(path)
    assert {(c.points, c.solid) for c in scene.contacts} == {("drawer", "cabinet")} and not heard.messages
    path.write_text(DRAWER.format(0.11, rail))
    assert not wb.robots.load(path).contacts
    assert "contact of 'cabinet' and 'drawer', which overlap by 0.01 m at the start; MuJoCo pushes" in heard.text


def test_a_body_in_parts_has_the_mass_and_motion_of_the_whole(tmp_path):
    """A foot with two soles, one of which touches the floor: the foot rests on it as in MuJoCo."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 .1" contype="2" conaffinity="2" friction=".3"/>
      <body name="foot" pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .05" mass="1"/>
      <geom name="sole" type="box" size=".1 .1 .02" pos="0 0 -.1" contype="2" mass=".5" friction=".8"/>
      <geom name="scale" type="box" size=".1 .1 .02" pos="0 0 -.16" mass=".5"/></body></worldbody></mujoco>"""
    (tmp_path / "robot.xml").write_text(text)
    scene = wb.robots.load(tmp_path / "robot.xml")
    assert [b.name for b in scene.rigid] == ["foot", "foot/sole"]
    assert sum(b.inertia.mass for b in scene.rigid) == pytest.approx(2.0, rel=1e-12)
    assert [(c.points, c.solid, c.friction) for c in scene.contacts] == [(scene.rigid[1].surface, "geom 0", 0.8)]
    sim = wb.Simulation(scene, wb.Articulated(), dt=5e-4)
    assert float(sim.rollout(None, 800).final.q[0, 2]) == pytest.approx(0.12, abs=2e-3)


@pytest.mark.parametrize(("bits", "parts"), [('contype="4" conaffinity="4"', {"foot"}), ("", {"foot", "foot/bumper"})])
def test_obstacles_of_the_user_have_default_bits(tmp_path, bits, parts):
    """A bumper that touches bumpers alone does not touch an added floor; a body that touches nothing does, as a whole."""
    geoms = f'<geom size=".1" friction=".7"/><geom name="bumper" size=".2" friction=".2" {bits}/>'
    text = '<mujoco><worldbody><body name="foot"><freejoint/>{}</body></worldbody></mujoco>'
    (tmp_path / "robot.xml").write_text(text.format(geoms))
    floor = wb.floor(-1.0)
    scene = wb.robots.load(tmp_path / "robot.xml", obstacles=[floor])
    surfaces = {b.surface: b.name for b in scene.rigid if b.points}
    assert {surfaces[c.points] for c in scene.contacts} == parts
    assert {surfaces[c.points]: c.friction for c in scene.contacts}["foot"] == max(0.7, floor.friction)
    (tmp_path / "robot.xml").write_text(text.format('<geom size=".1" contype="4" conaffinity="4"/>'))
    assert [c.solid for c in wb.robots.load(tmp_path / "robot.xml", obstacles=[floor]).contacts] == ["floor"]


SHAPES = """<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom name="g" {0}/></body>
  <body name="b" pos="3 0 1"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom {0}/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("geom", "said"),
    [
        ('type="mesh" mesh="m" euler="30 40 50" pos=".1 .2 .3"', "geom 'g' of 'a': it is 0.0002 m thick, and in contact it is the box"),
        ('type="ellipsoid" size=".2 .2 .0001"', "geom 'g' of 'a': it is 0.0002 m thick"),
        ('type="ellipsoid" size=".2 .2 .01"', ""),
        ('type="sphere" size="1e-4"', ""),
        ('type="cylinder" size="3e-4 3e-4"', "geom 'g' of 'a': its radius of 0.00042 m is too small"),
        ('type="capsule" size="1e-6 1e-5"', "geom 'g' of 'a': its radius of"),
    ],
)  # fmt: skip
def test_thin_and_tiny_geoms_do_not_stop_a_simulation(tmp_path, heard, geom, said):
    """Plates that would be lost between samples become boxes, at the pose of MuJoCo's plate; specks have no contact."""
    corners = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-1e-4, 1e-4)]
    text = "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "f 1 2 3\nf 2 3 4\nf 5 6 7\nf 1 5 7\n"
    (tmp_path / "m.obj").write_text(text)
    (tmp_path / "robot.xml").write_text(SHAPES.format(geom))
    scene = wb.robots.load(tmp_path / "robot.xml")
    wb.Articulated().build(scene, 1, "cpu")
    assert said in heard.text and bool(said) == bool(heard.messages)
    if "mesh" in geom:
        shape = scene.rigid[0].shape
        np.testing.assert_allclose(np.sort(shape.shape.bounds[1]), (1e-4, 0.1, 0.2), rtol=1e-3)
        np.testing.assert_allclose(shape.translation, (0.1, 0.2, 0.3), atol=1e-6)


@pytest.mark.parametrize("seed", range(30, 40))
def test_every_robot_that_is_read_can_be_simulated(tmp_path, seed):
    """With any options, on the ground or not, with few points or many."""
    generator = Generator(seed)
    (tmp_path / "robot.xml").write_text(generator.robot().format(""))
    options = {
        "fixed_base": generator.one(None, True, False), "self_contact": generator.one(True, False), "surroundings": generator.one(True, False),
        "contact_points": int(generator.one(64, 7, 1, 0)), "obstacles": generator.one((), [wb.floor(-5.0)]),
    }  # fmt: skip
    scene = wb.robots.load(tmp_path / "robot.xml", **options)
    wb.Articulated().build(scene, 1, "cpu")
