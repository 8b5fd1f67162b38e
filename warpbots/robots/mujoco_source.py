"""A robot file as MuJoCo's own parser and compiler understand it."""

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np

from warpbots import input_files
from warpbots.robots import compiler_options
from warpbots.robots.masses import LEAST, mend_moments, refuse_weightless, weigh
from warpbots.robots.meshes import give, locate, needed_hulls
from warpbots.robots.mujoco_versions import delete, field, virtual_files
from warpbots.robots.option_flags import idle_actuators, switch_off, touches
from warpbots.robots.robot_xml import family, modern, parsed, refuse_empty, refuse_strange_assets, whole
from warpbots.robots.urdf import colors, mimics, tidied
from warpbots.scene import SceneError

__all__ = ["Source", "matrix", "read", "unique"]

_CORRECT = "correct the element that it names, or take it out of the file"
_WEIGHED = "links without a mass that joints move, taken as solids of 1000 kg/m^3: "


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A compiled file.

    Attributes:
        path: Where it was.
        model: Its `mujoco.MjModel`.
        spec: The `mujoco.MjSpec` of which that was made.
        urdf: Whether it is URDF, rather than MJCF.
        name: What it calls itself.
        bodies: Names of its bodies, the world first; what has no name is numbered.
        joints: Names of its joints; what has no name is called after its body.
        mimics: Names of the joints of URDF that follow others.
        lines: What is read otherwise than it stands there, or not at all.
        idle: Indices of the actuators that the file has switched off.
        touches: Whether the file lets anything touch.
        notes: What MuJoCo said of it.
        words: The module `mujoco`, whose enumerations name kinds.
    """

    path: Path
    model: Any
    spec: Any
    urdf: bool
    name: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    mimics: tuple[str, ...]
    lines: tuple[str, ...]
    idle: frozenset[int]
    touches: bool
    notes: tuple[str, ...]
    words: ModuleType

    def kind(self, enumeration: str, value: int) -> str:
        """Word of MuJoCo for a number: ``kind("mjtJoint", 3)`` is ``"hinge"``."""
        return getattr(self.words, enumeration)(value).name.partition("_")[2].lower()

    def joints_of(self, body: int) -> list[int]:
        """Indices of the joints of a body."""
        first, count = self.model.body_jntadr[body], self.model.body_jntnum[body]
        return list(range(first, first + count))

    def joint_kind(self, joint: int) -> str:
        """``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``."""
        return self.kind("mjtJoint", self.model.jnt_type[joint])

    def weighs(self, body: int) -> bool:
        """Whether a body has a mass, or moments of inertia."""
        return bool(self.model.body_mass[body] > LEAST or self.model.body_inertia[body].max() > LEAST)


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion of MuJoCo (w, x, y, z)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


def unique(name: str, taken: set[str]) -> str:
    """`name`, or with a number where it is taken; it is taken now."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} {count}"
    taken.add(found)
    return found


def read(
    path: str | Path,
    compiler: Mapping[str, Any] | None = None,
    asset_root: str | Path | None = None,
    floats: bool = False,
) -> Source:
    """Parse and compile a file.

    Args:
        path: The file.
        compiler: Attributes of MJCF's ``<compiler>`` in the place of the file's own.
        asset_root: The folder outside of which no file is read; None for the one above that of the file.
        floats: Whether roots of URDF are to float.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: MuJoCo is not installed, or COLLADA's parser.
        SceneError: MuJoCo refuses the file; the message has its reason.
    """
    path = input_files.readable(path)
    if path.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        raise SceneError(f"{path}: robots are read from URDF (.urdf) and MJCF (.xml), got {path.suffix or 'no suffix'}")
    mujoco, notes, compiler = _mujoco(), [], compiler or {}
    compiler_options.refuse_unknown(compiler)
    root = input_files.asset_root(path, asset_root)
    tree = parsed(path)
    urdf = tree.tag == "robot"
    with _heard(mujoco, notes):
        if urdf:
            opened = functools.partial(_open_urdf, mujoco, path, root, compiler, floats)
        else:
            opened = functools.partial(_open_mjcf, mujoco, path, root, compiler)
        spec, model, lines = _compiled(mujoco, path, opened, urdf, floats)
    if model.nbody < 2:
        raise SceneError(f"{path} holds no bodies beside the world; a robot needs at least one <body> or <link>")
    switch_off(model, mujoco)
    taken: set[str] = set()
    bodies = tuple(unique(model.body(k).name or f"body {k}", taken) for k in range(model.nbody))
    joints = _joint_names(model, bodies)
    refuse_weightless(model, bodies, joints, path)
    return Source(
        path=path, model=model, spec=spec, urdf=urdf, bodies=bodies,
        name=path.stem if spec.modelname in ("", "MuJoCo Model") else spec.modelname,
        joints=joints, mimics=mimics(tree) if urdf else (), words=mujoco, lines=tuple(lines),
        idle=idle_actuators(model, mujoco), touches=touches(model, mujoco), notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as fault:
        raise ImportError(
            "robots are read by MuJoCo's parser, which is not installed; get it with: pip install 'warpbots[robots]'"
        ) from fault
    return mujoco


@contextlib.contextmanager
def _heard(mujoco: ModuleType, notes: list[str]) -> Iterator[None]:
    """Let MuJoCo say its warnings to `notes`, rather than to a file in the folder of whoever runs this."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(notes.append)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yield
        notes += [str(warning.message) for warning in said]
    finally:
        mujoco.set_mju_user_warning(before)


def _asked(path: Path, of: Callable[[], Any]) -> Any:
    """What MuJoCo answers, or its own sentence of why not, with a remedy that can be had here."""
    try:
        return of()
    except SceneError:
        raise
    except (ValueError, RuntimeError, TypeError, LookupError) as fault:
        reason = " ".join(str(fault).split()).removeprefix("Error: ")
        remedy = compiler_options.remedy(reason) or whole(path) or _CORRECT
        raise SceneError(f"{path} cannot be read as a robot; MuJoCo says: {reason}; {remedy}") from fault


def _open_urdf(
    mujoco: ModuleType, path: Path, root: Path, compiler: Mapping[str, Any], floats: bool
) -> tuple[Any, list[str]]:
    """The specification of a URDF file, whose links weigh what they should, and what it may have meant otherwise."""
    tree = parsed(path)
    said = tree.find("mujoco/compiler")
    own = {} if said is None else said.attrib
    painted, lines = colors(tree), tidied(tree, path)
    places = locate(tree, path, root, compiler.get("meshdir", own.get("meshdir")))
    spec = _asked(path, lambda: mujoco.MjSpec.from_string(ElementTree.tostring(tree, encoding="unicode")))
    give(spec, places)
    for geom in spec.geoms:
        geom.rgba = painted.get(geom.parent.name, geom.rgba)
    _prepare(mujoco, spec, {name: value for name, value in compiler.items() if name != "meshdir"})
    if "inertiafromgeom" not in {*own, *compiler}:
        solid, held = weigh(spec, floats)
        if solid:
            lines.append(f"{_WEIGHED}{', '.join(map(repr, solid))}")
        if held:
            lines.append(f"joints that move neither a mass nor a solid, and are held: {', '.join(map(repr, held))}")
    return spec, lines


def _open_mjcf(mujoco: ModuleType, path: Path, root: Path, compiler: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The specification of an MJCF file."""
    files = family(path, root)
    tag = files[path].tag
    if tag != "mujoco":
        remedy = whole(path) or "load the file that includes it"
        raise SceneError(f"{path} is no whole robot, which begins with <robot> or <mujoco>, but <{tag}>; {remedy}")
    refuse_empty(files, path)
    refuse_strange_assets(files, path, root)
    text = modern(files)
    options = virtual_files(mujoco, text)
    spec = _asked(path, lambda: mujoco.MjSpec.from_file(str(path), **options))
    _prepare(mujoco, spec, compiler)
    return spec, []


def _prepare(mujoco: ModuleType, spec: Any, compiler: Mapping[str, Any]) -> None:
    """Follow instructions, keep what MuJoCo would merge, let massless bodies move, and leave out looks and sensors."""
    compiler_options.follow(spec, compiler, mujoco)
    spec.compiler.fusestatic = False
    spec.compiler.boundmass = max(spec.compiler.boundmass, LEAST)
    spec.compiler.boundinertia = max(spec.compiler.boundinertia, LEAST)
    for texture in spec.textures:
        if texture.file or any(texture.cubefiles):
            texture.file, texture.builtin = "", mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.cubefiles = [""] * len(texture.cubefiles)
            texture.width = texture.height = 2
    for part in (*spec.sensors, *spec.skins):
        delete(spec, part)


def _compiled(
    mujoco: ModuleType, path: Path, opened: Callable[[], tuple[Any, list[str]]], urdf: bool, floats: bool
) -> tuple[Any, Any, list[str]]:
    """Specification, model and lines, with moments of inertia and meshes mended where MuJoCo does not take them."""
    spec, lines = opened()
    try:
        model = spec.compile()
    except ValueError:  # which leaves the specification unreadable
        spec, lines = opened()
        lines += mend_moments(spec, path, floats and urdf)
        needed_hulls(spec, mujoco, path.parent / spec.meshdir, urdf, lines)
        model = _asked(path, spec.compile)
    if _take_many_sided(spec, model, lines):
        model = _asked(path, spec.compile)
    for k, line in enumerate(lines):
        if line.startswith(_WEIGHED):
            names = [model.body(b).name for b in range(1, model.nbody) if repr(model.body(b).name) in line]
            masses = [float(model.body(name).mass[0]) for name in names]
            lines[k] = f"{line} ({', '.join(f'{m:.3g}' for m in masses)} kg; {sum(masses):.4g} kg in all)"
    return spec, model, lines


def _take_many_sided(spec: Any, model: Any, lines: list[str]) -> bool:
    """Take actuators of several controls or forces out, of which newer versions of MuJoCo have some; whether any were.

    Without them the arrays of controls, of forces and of actuators have the same indices; keyframes follow.
    """
    odd = np.flatnonzero((field(model, "actuator_ctrlnum", 1) != 1) | (field(model, "actuator_outnum", 1) != 1))
    actuators = list(spec.actuators)
    for k in odd:
        lines.append(f"actuator {actuators[k].name or f'actuator {k}'!r}: it has several controls or forces")
        delete(spec, actuators[k])
    return bool(len(odd))


def _joint_names(model: Any, bodies: tuple[str, ...]) -> tuple[str, ...]:
    given = [model.joint(j).name for j in range(model.njnt)]
    taken = {name for name in given if name}
    return tuple(name or unique(bodies[model.jnt_bodyid[j]], taken) for j, name in enumerate(given))
