"""Third-party files: meshes of every common kind, dialects of URDF, and limits of what a file may do."""

import mujoco
import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.meshing.convex_hulls import convex_hull
from warpbots.scene import TriangleMesh
from warpbots.scene.palette import RIGID

BLOCK = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)

COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
 <library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array id="a" count="12">0 0 0 1 0 0 0 2 0 0 0 3</float_array>
   <technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
    <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
 </mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="s"><node><scale>2 2 2</scale><instance_geometry url="#g"/></node></visual_scene>
 </library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""

LINK = """<robot name="r"><link name="a"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="{}"/></geometry></collision></link></robot>"""


@pytest.fixture
def folder(tmp_path):
    """The folder ``urdf`` of a robot in a package, beside which ``meshes`` lies."""
    place = tmp_path / "home" / "package" / "urdf"
    place.mkdir(parents=True)
    return place


def load(folder, text, name="robot.urdf", **options):
    (folder / name).write_text(text)
    return wb.robots.load(folder / name, **options)


def mesh_of(folder, name, content, **options):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(folder, LINK.format(name), **options).rigid[0].shape


# --- meshes -------------------------------------------------------------------------------------------------------------


def test_collada_has_the_unit_of_its_file_and_the_axes_of_ros(folder):
    """Legs of 1, 2 and 3 cm, doubled by their node, along x, y and z, although the file says that y is up."""
    shape = mesh_of(folder, "m.dae", COLLADA)
    np.testing.assert_allclose(shape.bounds, ((0, 0, 0), (0.02, 0.04, 0.06)), atol=1e-7)


def test_gltf_is_turned_so_that_z_is_up(folder):
    """A length of 2 m along y, up in glTF, becomes a length along z."""
    block = trimesh.Trimesh(BLOCK, trimesh.convex.convex_hull(BLOCK).faces)
    shape = mesh_of(folder, "m.glb", trimesh.Scene(block.convex_hull).export(file_type="glb"))
    np.testing.assert_allclose(shape.bounds, ((0, -3, 0), (1, 0, 2)), atol=1e-6)


@pytest.mark.parametrize("kind", ["ply", "off", "stl", "stl_ascii"])
def test_other_kinds_of_meshes(folder, kind):
    hull = trimesh.convex.convex_hull(BLOCK)
    shape = mesh_of(folder, f"m.{kind[:3]}", hull.export(file_type=kind))
    np.testing.assert_allclose(shape.bounds, ((0, 0, 0), (1, 2, 3)), atol=1e-6)
    assert shape.volume == pytest.approx(6.0, rel=1e-6)


def test_flat_and_empty_meshes_are_left_out_by_name(folder, heard):
    flat = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"
    for name, content in (("m.obj", flat), ("n.stl", b"\0" * 84)):
        heard.clear()
        assert mesh_of(folder, name, content) is None
        assert f"mesh {name[0]!r} has no volume" in heard.text


@pytest.mark.parametrize("limit", [4, 20, 64, -1])
@pytest.mark.parametrize("default", [False, True])
def test_a_hull_has_the_vertices_that_mujoco_keeps(folder, limit, default):
    """The file limits their number, at the mesh or for all meshes: the same corners and volume as MuJoCo's own hull."""
    trimesh.creation.icosphere(2, 0.1).export(folder / "ball.stl")
    words = f'maxhullvert="{limit}"' * (limit > 0)
    text = (
        f'<mujoco><default><mesh {words * default}/></default><asset><mesh file="ball.stl" {words * (not default)}/>'
        '</asset><worldbody><body><freejoint/><geom type="mesh" mesh="ball"/></body></worldbody></mujoco>'
    )
    body = load(folder, text, "ball.xml").rigid[0]
    model = mujoco.MjModel.from_xml_path(str(folder / "ball.xml"))
    vertices, faces = model.mesh_graph[:2]
    assert len(body.shape.vertices) == vertices == (limit if limit > 0 else 162)
    corners = 2 + 2 * vertices + vertices + 3 * faces
    hull = trimesh.Trimesh(model.mesh_vert, model.mesh_graph[corners : corners + 3 * faces].reshape(-1, 3))
    assert body.shape.volume == pytest.approx(abs(hull.volume), rel=1e-6)


def test_a_hull_is_closed_where_its_facets_are_slivers():
    """Rings of points along a turned tube, in single precision: the rings between the ends lie almost in its hull."""
    rng = np.random.default_rng(14)
    rng.uniform(size=(2, 3000))
    turn, angles = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.linspace(0.0, 2.0 * np.pi, 500, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(500)], axis=1)
    points = np.concatenate([ring + [0.0, 0.0, z] for z in np.linspace(0.0, 1.0, 9)]) @ turn.T
    points = (0.01 * points).astype(np.float32).astype(float)
    plain = trimesh.convex.convex_hull(points)
    with pytest.raises(wb.SceneError, match="not watertight"):
        TriangleMesh(plain.vertices, plain.faces)
    hull = TriangleMesh(*convex_hull(points))
    assert hull.volume == pytest.approx(1e-6 * 250.0 * np.sin(2.0 * np.pi / 500), rel=1e-6)


def test_a_pointer_of_git_is_told_from_a_mesh(folder):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    with pytest.raises(wb.SceneError, match=r"m\.stl is a Git LFS pointer, not the file; run: git lfs pull"):
        mesh_of(folder, "m.stl", pointer)
    with pytest.raises(wb.SceneError, match=r"robot\.urdf is a Git LFS pointer"):
        load(folder, pointer)
    text = '<mujoco><asset><mesh file="m.stl"/></asset><worldbody><body><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    with pytest.raises(wb.SceneError, match=r"m\.stl is a Git LFS pointer"):
        load(folder, text, "robot.xml")


def test_meshes_that_are_not_there_or_not_read_are_named(folder):
    with pytest.raises(wb.SceneError, match=r"link 'a': there is no mesh 'm\.stl'; .*compiler=\{'meshdir': \.\.\.\}"):
        load(folder, LINK.format("m.stl"))
    with pytest.raises(wb.SceneError, match=r"meshes are read from \.stl, .* got 'm\.step'"):
        mesh_of(folder, "m.step", "ISO-10303")
    (folder / "geometry").mkdir()
    trimesh.convex.convex_hull(BLOCK).export(folder / "geometry" / "n.stl")
    assert load(folder, LINK.format("n.stl"), compiler={"meshdir": "geometry"}).rigid[0].shape


def test_two_meshes_of_one_name_are_two(folder):
    for name, scale in (("one", 1.0), ("two", 2.0)):
        (folder / name).mkdir()
        trimesh.convex.convex_hull(scale * BLOCK).export(folder / name / "m.stl")
    second = LINK.format("two/m.stl").removeprefix('<robot name="r">').replace('"a"', '"b"')
    tie = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
    text = LINK.format("one/m.stl").replace("</robot>", tie) + second
    assert [b.shape.volume for b in load(folder, text).rigid] == pytest.approx([6.0, 48.0], rel=1e-6)


# --- what a file refers to ----------------------------------------------------------------------------------------------


def test_files_outside_are_read_only_when_allowed(folder):
    """Files beside the folder are read; files farther away, or by an absolute path, only on request."""
    hull, meshes = trimesh.convex.convex_hull(BLOCK), folder.parent / "meshes"
    meshes.mkdir()
    hull.export(meshes / "m.stl")
    hull.export(folder.parent.parent / "m.stl")
    mjcf = '<mujoco><asset><mesh file="{}"/></asset><worldbody><body><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    for text, name in ((LINK, "robot.urdf"), (mjcf, "robot.xml")):
        assert load(folder, text.format("../meshes/m.stl"), name).rigid[0].shape
        assert load(folder, text.format(meshes / "m.stl"), name).rigid[0].shape
        for far in ("../../m.stl", folder.parent.parent / "m.stl"):
            with pytest.raises(wb.SceneError, match=r"which lies outside .*pass asset_root="):
                load(folder, text.format(far), name)
            assert load(folder, text.format(far), name, asset_root=folder.parent.parent).rigid[0].shape


def test_packages_are_found_above_the_file_but_not_above_home(folder, monkeypatch):
    other = folder.parents[1] / "other" / "meshes"
    other.mkdir(parents=True)
    trimesh.convex.convex_hull(BLOCK).export(other / "m.stl")
    text = LINK.format("package://other/meshes/m.stl")
    assert load(folder, text).rigid[0].shape
    assert load(folder, LINK.format("package:///other/meshes/m.stl")).rigid[0].shape
    monkeypatch.setattr("pathlib.Path.home", lambda: folder.parents[1] / "user")
    with pytest.raises(wb.SceneError, match="there is no mesh"):
        load(folder, text)


def test_an_include_from_outside_or_of_itself_is_refused(folder):
    body = '<mujoco><worldbody><body><geom size=".1"/></body></worldbody><include file="{}"/></mujoco>'
    (folder.parent.parent / "far.xml").write_text("<mujoco/>")
    with pytest.raises(wb.SceneError, match=r"far\.xml, which lies outside .*pass asset_root="):
        load(folder, body.format("../../far.xml"), "robot.xml")
    with pytest.raises(wb.SceneError, match=r"robot\.xml includes itself by way of robot\.xml"):
        load(folder, body.format("robot.xml"), "robot.xml")
    (folder / "other.xml").write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(wb.SceneError, match=r"includes itself by way of other\.xml"):
        load(folder, body.format("other.xml"), "robot.xml")
    with pytest.raises(wb.SceneError, match=r"<include file='none\.xml'>: there is no such file"):
        load(folder, body.format("none.xml"), "robot.xml")


def test_a_part_of_a_robot_names_the_whole(folder):
    (folder / "scene.xml").write_text('<mujoco><include file="arm.xml"/></mujoco>')
    for text in ("<mujoco><default/></mujoco>", '<mujocoinclude><body name="a"/></mujocoinclude>'):
        with pytest.raises(wb.SceneError, match=r"it is part of scene\.xml: load that"):
            load(folder, text, "arm.xml")
    with pytest.raises(wb.SceneError, match="is not a complete robot: .* load the file that includes it"):
        load(folder, "<mujocoinclude/>", "lone.xml")


def test_bombs_are_refused(folder):
    entities = '<!DOCTYPE r [<!ENTITY a "boom">]><robot name="r"><link name="&a;"/></robot>'
    with pytest.raises(wb.SceneError, match="declares the entity 'a', and entities are not supported"):
        load(folder, entities)
    with pytest.raises(wb.SceneError, match="nested more than 500 levels deep"):
        load(folder, "<mujoco><worldbody>" + "<body>" * 600 + "</body>" * 600 + "</worldbody></mujoco>", "deep.xml")
    copies = (
        '<replicate count="{0}" offset="1 0 0"><replicate count="{0}" offset="0 1 0"><body/></replicate></replicate>'
    )
    with pytest.raises(wb.SceneError, match=r"it has 2e\+16 elements with all copies"):
        load(folder, f"<mujoco><worldbody>{copies.format(10**8)}</worldbody></mujoco>", "many.xml")


def test_attributes_of_older_versions_without_a_meaning_are_passed_over(folder):
    (folder / "part.xml").write_text('<mujoco><option gravity="0 0 -1"\n apirate="100"/></mujoco>')
    text = '<mujoco><include file="part.xml"/><worldbody><body><geom size=".1"/></body></worldbody></mujoco>'
    assert load(folder, text, "robot.xml").gravity == (0.0, 0.0, -1.0)


def test_looks_that_are_not_there_do_not_matter(folder):
    looks = (
        '<asset><texture name="t" type="2d" file="none.png"/><material name="m" texture="t" rgba="1 0 0 1"/></asset>'
    )
    text = f'<mujoco>{looks}<worldbody><body><geom size=".1" material="m"/></body></worldbody></mujoco>'
    assert load(folder, text, "robot.xml").rigid[0].color == (1.0, 0.0, 0.0)
    ball = '<mujoco><worldbody><body><geom material="m.1" size=".1"/></body></worldbody></mujoco>'
    assert load(folder, ball, "ball.xml").rigid[0].shape.radius == 0.1


def test_links_have_the_colours_of_their_looks(folder):
    """Defined anywhere in the file, or by the visual itself, also if the mesh of the visual is missing."""
    link = (
        '<link name="{}">{}<visual><geometry><mesh filename="none.dae"/></geometry><material name="{}">{}</material>'
        '</visual><collision><geometry><sphere radius=".1"/></geometry></collision></link>'
    )
    links = link.format("a", MASS, "red", "") + link.format("b", MASS, "own", '<color rgba="0 1 0 1"/>')
    joint = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
    text = f'<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material>{links}{joint}</robot>'
    assert [body.color for body in load(folder, text).rigid] == [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]


def test_nothing_is_written_where_the_user_is(folder, tmp_path, monkeypatch, heard):
    """MuJoCo's own log of warnings becomes a part of ours."""
    monkeypatch.chdir(tmp_path)
    links = "".join(f'<link name="{name}">{MASS}</link>' for name in "ab")
    mimic = '<joint name="j" type="planar"><parent link="a"/><child link="b"/><mimic joint="j"/></joint>'
    load(folder, f'<robot name="r">{links}{mimic}</robot>', ignore_loops=True)
    assert "<mimic> on joint 'j' ignored" in heard.text
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


# --- dialects of URDF ---------------------------------------------------------------------------------------------------

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ARM = '<link name="a">{inside}</link><link name="b">{mass}</link><joint name="j" type="revolute">{joint}</joint>'
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
ENDS = '<parent link="a"/><child link="b"/><axis xyz="0 0 1"/>' + LIMIT


def arm(inside="", mass=MASS, joint=ENDS, more=""):
    return f'<robot name="r">{ARM.format(inside=inside, mass=mass, joint=joint)}{more}</robot>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (arm(mass=MASS + MASS), "link 'b': <inertial> occurs more than once; the first is used"),
        (arm(mass=MASS.replace(' ixy="0"', "")), "link 'b': its <inertia> has no ixy; taken as 0"),
        (arm(joint=ENDS.replace('xyz="0 0 1"', 'xzy="0 0 1"')), "joint 'j': its <axis> has no xyz, so it is x"),
        (arm(joint=ENDS.replace('"-1"', '"2"')), "joints with a lower limit above the upper, taken as without limits: 'j'"),
        (arm(joint=ENDS.replace(LIMIT, "")), "joints without a lower and an upper limit, taken as without limits: 'j'"),
        (arm(joint=ENDS.replace('lower="-1" upper="1"', "")), "without a lower and an upper limit, taken as without"),
        (arm("<collision><geometry><sphere radius='0'/></geometry></collision>"), "'a': a sphere of radius 0"),
        (arm("<contact><lateral_friction value='1'/></contact>"), "other simulators (lateral_friction): 'a'"),
        (arm(more='<gazebo reference="b"><mu1>1</mu1></gazebo>'), "other simulators (mu1): 'b'"),
        (arm("<visual><geometry/><material name=''/><material name=''/></visual>"), ""),
        (arm(joint=ENDS.replace('link="a"', 'link="world"')), ""),
    ],
)  # fmt: skip
def test_dialects_are_read_and_named(folder, heard, text, said):
    scene = load(folder, text)
    assert {j.child: j.kind for j in scene.joints}["b"] == "revolute"
    assert said in heard.text and bool(said) == bool(heard.messages)


@pytest.mark.parametrize(
    ("kind", "value"), [("revolute", 0.0), ("prismatic", 0.0), ("revolute", 0.7), ("prismatic", -0.3)]
)
def test_a_joint_with_equal_limits_is_fixed_there(folder, heard, kind, value):
    """Its child has the pose that MuJoCo gives at this coordinate of an unlimited joint, and no motor drives it."""
    place = '<origin xyz=".1 .2 .3" rpy=".4 -.5 .6"/><axis xyz="1 2 -2"/>'
    free = '<parent link="a"/><child link="b"/>' + place
    ends = f'<limit lower="{value}" upper="{value}" effort="9" velocity="1"/>'
    scene = load(folder, arm(joint=free + ends).replace("revolute", kind))
    assert f"joint 'j': both limits are {value:g}, so it is fixed there" in heard.text
    assert {j.child: j.kind for j in scene.joints}["b"] == "fixed" and not scene.actuators
    model = mujoco.MjModel.from_xml_string(arm(joint=free).replace("revolute", kind))
    data = mujoco.MjData(model)
    data.qpos[0] = value
    mujoco.mj_forward(model, data)
    body = next(b for b in scene.rigid if b.name == "b")
    np.testing.assert_allclose(body.position, data.body("b").xpos, atol=1e-9)
    np.testing.assert_allclose(body.rotation, data.body("b").xmat.reshape(3, 3), atol=1e-9)


def test_one_limit_alone_has_zero_for_the_other(folder):
    ends = {"lower": (-1.0, 0.0), "upper": (0.0, 1.0)}
    for name, other in (("lower", "upper"), ("upper", "lower")):
        joint = next(
            j
            for j in load(folder, arm(joint=ENDS.replace(f'{other}="{"-" * (other == "lower")}1" ', ""))).joints
            if j.name == "j"
        )
        assert (joint.lower[0], joint.upper[0]) == ends[name]


def test_a_joint_that_mimics_a_fixed_one_is_named(folder, heard):
    more = f'<link name="c">{MASS}</link><joint name="k" type="revolute"><parent link="a"/><child link="c"/><mimic joint="j"/>{LIMIT}</joint>'
    text = arm(joint=ENDS.replace('lower="-1" upper="1"', 'lower="0" upper="0"'), more=more)
    with pytest.raises(wb.SceneError, match="mimic 'k'"):
        load(folder, text)
    scene = load(folder, text, ignore_loops=True)
    assert "mimic 'k'" in heard.text and {j.name: j.kind for j in scene.joints}["k"] == "revolute"


def test_limits_of_mjcf_follow_mujoco(folder, heard):
    """A range limits a joint, unless the file says otherwise; equal and reversed ends limit nothing, and are named."""
    body = '<mujoco><compiler angle="radian"/><worldbody><body><joint name="j" {}/><geom size=".1"/></body></worldbody></mujoco>'
    for words, limited, said in (
        ('range="-1 1"', True, ""), ('range="-1 1" limited="false"', False, ""), ('range="0 0"', False, ""),
        ('range=".5 .5"', False, "its range from 0.5 to 0.5, which limits nothing"), ('range="1 -1"', False, "its range from 1 to -1, which limits"),
    ):  # fmt: skip
        heard.clear()
        joint = load(folder, body.format(words), "robot.xml").joints[0]
        assert (joint.lower is not None) == limited
        assert said in heard.text and bool(said) == bool(heard.messages)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (arm(joint=ENDS.replace('"1"', '"1.57."', 1)), r"joint 'j': <limit upper='1\.57\.'>; give 1 number"),
        (arm(joint=ENDS.replace('"-1"', '"${lower}"')), r"<limit lower='\$\{lower\}'>; run xacro on it first"),
        (arm(joint=ENDS.replace('link="a"', 'link="c"')), r"joint 'j' has the parent 'c', and there is no such link"),
        (arm(more='<link name="a"/>'), r"two links are called 'a'; names must be unique"),
        (arm(mass='<inertial><mass value="1"/></inertial>'), r"link 'b': its <inertial> has a mass but no complete <inertia>"),
        ('<robot name="r"/>', r"has no bodies besides the world"),
    ],
)  # fmt: skip
def test_urdf_that_means_nothing_is_refused_by_name(folder, text, said):
    with pytest.raises(wb.SceneError, match=said):
        load(folder, text)


@pytest.mark.parametrize("file", ["robot.urdf", "robot.xml"])
def test_links_without_a_colour_have_one_of_the_palette(file, folder):
    """Two robots in one scene differ; a grey that the file gives by a material stays."""
    if file == "robot.xml":
        grey = '<asset><material name="grey" rgba=".5 .5 .5 1"/></asset>'
        bodies = '<body><geom size=".1"/><body name="b"><geom size=".1" material="grey"/></body></body>'
        text = f"<mujoco>{grey}<worldbody>{bodies}</worldbody></mujoco>"
    else:
        shape = f'{MASS}<collision><geometry><sphere radius=".1"/></geometry></collision>'
        paint = '<material name="m"><color rgba=".2 .3 .4 1"/></material>'
        painted = f'<visual><geometry><sphere radius=".1"/></geometry>{paint}</visual>'
        joint = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
        text = f'<robot name="r"><link name="a">{shape}</link><link name="b">{shape}{painted}</link>{joint}</robot>'
    scene = load(folder, text, file)
    assert [body.color is None for body in scene.rigid] == [True, False]
    assert scene.colors[0] in RIGID
