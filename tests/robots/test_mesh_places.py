"""Locations of the meshes of URDF: by paths, and in packages by name, never in another package."""

import re

import pytest
import trimesh

import warpbots as wb

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def block(place, size):
    """A cube with edges of `size` [m] as a mesh file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box([size] * 3).export(place)


def robot(folder, *meshes, more="", scale=""):
    """A URDF file with a link for each mesh, fixed to the first."""
    links = [
        f'<link name="l{k}">{INERTIAL}<collision><geometry><mesh filename="{mesh}"{scale}/></geometry></collision></link>'
        for k, mesh in enumerate(meshes)
    ]
    ties = [
        f'<joint name="j{k}" type="fixed"><parent link="l0"/><child link="l{k}"/></joint>'
        for k in range(1, len(meshes))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robot.urdf").write_text(f'<robot name="r">{"".join(links + ties)}{more}</robot>')
    return folder / "robot.urdf"


def edges(path, **options):
    """Edges of the cubes of a robot [m]."""
    bodies = wb.robots.load(path, **options).rigid
    return [pytest.approx(float((b.shape.bounds[1] - b.shape.bounds[0]).max()), rel=1e-6) for b in bodies]


def manifest(folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.xml").write_text(f'<?xml version="1.0"?><package format="3"><name> {name} </name></package>')


BOTH = "package://arm/meshes/part.stl", "package://hand/meshes/part.stl"


@pytest.mark.parametrize(
    ("arm", "hand", "name"),
    [
        ("ws/arm", "ws/hand", None),
        ("ws/src/arm", "ws/src/hand", None),
        ("ws/src/arm", "ws/share/hand", None),
        ("ws/src/arm", "ws/install/hand/share/hand", None),
        ("ws/share/arm", "ws/src/hand", None),
        ("ws/arm", "ws/arm/vendor/hand", "hand"),
        ("ws/arm", "ws/hand_description-main", "hand"),
        ("ws/src/a/arm", "ws/src/b/hand-1.2", "hand"),
        ("ws/hand/robots/arm", "ws/hand", None),
    ],
)
def test_each_package_has_its_own_mesh(tmp_path, arm, hand, name):
    """Both packages have a file of this path, as has the workspace, whose file belongs to neither."""
    block(tmp_path / "ws/meshes/part.stl", 0.7)
    block(tmp_path / arm / "meshes/part.stl", 0.25)
    block(tmp_path / hand / "meshes/part.stl", 0.03)
    if name:
        manifest(tmp_path / hand, name)
    path = robot(tmp_path / arm / "urdf", *BOTH)
    assert edges(path) == [0.25, 0.03]
    assert edges(path, asset_root=tmp_path / "ws") == [0.25, 0.03]


def test_a_package_that_is_not_there_is_refused_with_the_places_searched(tmp_path):
    """Neither the robot's own package nor a folder of this name that is another package replaces it."""
    block(tmp_path / "arm/meshes/part.stl", 0.25)
    path = robot(tmp_path / "arm/urdf", BOTH[1])
    message = rf"link 'l0': there is no mesh '{BOTH[1]}'; no folder is the package 'hand' .* searched were "
    with pytest.raises(wb.SceneError, match=message + rf"{tmp_path}/arm/urdf, {tmp_path}/arm, {tmp_path}, "):
        wb.robots.load(path)
    block(tmp_path / "hand/meshes/part.stl", 0.03)
    manifest(tmp_path / "hand", "foot")
    with pytest.raises(wb.SceneError, match=r"packages=\{'hand': \.\.\.\}"):
        wb.robots.load(path)
    (tmp_path / "hand" / "package.xml").unlink()
    assert edges(path) == [0.03]
    (tmp_path / "hand" / "meshes/part.stl").unlink()
    with pytest.raises(wb.SceneError, match=rf"package 'hand' is {tmp_path}/hand, and does not have it there"):
        wb.robots.load(path)


def test_the_user_says_which_folder_a_package_is(tmp_path):
    block(tmp_path / "here/meshes/part.stl", 0.25)
    block(tmp_path / "elsewhere/v2/meshes/part.stl", 0.03)
    path = robot(tmp_path / "here/urdf", *BOTH)
    folders = {"arm": tmp_path / "here", "hand": str(tmp_path / "elsewhere/v2")}
    assert edges(path, packages=folders) == [0.25, 0.03]
    with pytest.raises(FileNotFoundError, match=r"packages\['hand'\]: there is no folder"):
        wb.robots.load(path, packages={"hand": tmp_path / "none"})


def test_its_own_package_is_known_by_its_manifest(tmp_path):
    """A clone whose folder has another name, below a folder that has the name of the package."""
    block(tmp_path / "arm/clone/meshes/part.stl", 0.25)
    block(tmp_path / "arm/meshes/part.stl", 0.7)
    manifest(tmp_path / "arm/clone", "arm")
    assert edges(robot(tmp_path / "arm/clone/urdf", BOTH[0])) == [0.25]


@pytest.mark.parametrize(
    "said",
    [
        "model://arm/my meshes/Part A.stl", "PACKAGE://arm/my%20meshes/Part%20A.stl", "package:/arm/my meshes/Part A.stl",
        r"..\my meshes\Part A.stl", "../my%20meshes/Part%20A.stl", "file:../my meshes/Part A.stl", "file://{}/arm/my meshes/Part A.stl",
        "file://localhost{}/arm/my%20meshes/Part%20A.stl", "{}/arm/my meshes/Part A.stl", "  ../my meshes/Part A.stl ",
        r"package://arm\my meshes\Part A.stl",
    ],
)  # fmt: skip
def test_ways_to_write_a_place(tmp_path, said):
    block(tmp_path / "arm/my meshes/Part A.stl", 0.25)
    assert edges(robot(tmp_path / "arm/urdf", said.format(tmp_path))) == [0.25]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("https://host/part.stl", "the mesh 'https://host/part.stl' has the scheme 'https'; supported are package,"),
        ("../meshes/PART.stl", "there is part.stl, which differs in case: rename it"),
        (r"C:\meshes\part.stl", "put it where the robot file says"),
        ("", "a <mesh> has no filename"),
    ],
)
def test_places_that_are_none_are_refused(tmp_path, said, message):
    block(tmp_path / "arm/meshes/part.stl", 0.25)
    with pytest.raises(wb.SceneError, match=re.escape(message)):
        wb.robots.load(robot(tmp_path / "arm/urdf", said))


def test_meshes_of_one_folder_are_told_apart_or_refused(tmp_path):
    """With meshdir only names matter, as in MuJoCo; two different references to one file are refused."""
    block(tmp_path / "arm/all/part.stl", 0.25)
    block(tmp_path / "arm/all/left/part.stl", 0.1)
    block(tmp_path / "arm/all/right/part.stl", 0.2)
    assert edges(robot(tmp_path / "arm", "left/part.stl", "right/part.stl"), compiler={"meshdir": "all"}) == [0.1, 0.2]
    path = robot(tmp_path / "arm", *BOTH, more='<mujoco><compiler meshdir="all"/></mujoco>')
    with pytest.raises(wb.SceneError, match=rf"'{BOTH[0]}' and '{BOTH[1]}' both are .*all/part\.stl by meshdir='all'"):
        wb.robots.load(path)
    assert edges(robot(tmp_path / "arm", BOTH[0], BOTH[0]), compiler={"meshdir": "all"}) == [0.25, 0.25]


def test_one_mesh_in_two_sizes_is_two(tmp_path):
    block(tmp_path / "part.stl", 0.25)
    path = robot(tmp_path, "part.stl", "part.stl", scale=' scale="1 1 1"')
    path.write_text(path.read_text().replace('scale="1 1 1"', 'scale="2 2 2"', 1))
    assert edges(path) == [0.5, 0.25]
