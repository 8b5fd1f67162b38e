"""Reads a robot file with MuJoCo's own parser and compiler."""

import contextlib
import copy
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from warpbots import input_files
from warpbots.robots import compiler_options
from warpbots.robots.masses import LEAST, mend_moments, mend_rounding, refuse_massless, settle_masses
from warpbots.robots.mesh_files import replace_refused_meshes, set_mesh_files
from warpbots.robots.mesh_places import checked_packages, locate_meshes
from warpbots.robots.mujoco_versions import refuse_older
from warpbots.robots.names import unique
from warpbots.robots.option_flags import switch_off
from warpbots.robots.robot_xml import (
    including_file,
    is_robot,
    modernised,
    parsed,
    refuse_empty,
    refuse_foreign_assets,
    with_includes,
)
from warpbots.robots.urdf import colors, mimics, normalised
from warpbots.scene import SceneError

__all__ = ["Source", "import_mujoco", "read"]

_CORRECT = "correct the element that it names, or remove it from the file"


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A compiled robot file.

    Attributes:
        path: Path of the file.
        model: The `mujoco.MjModel` of the file.
        spec: The `mujoco.MjSpec` from which `model` was compiled.
        urdf: Whether the file is URDF; otherwise it is MJCF.
        name: Name of the robot.
        bodies: Names of the bodies of `model`, the world first; bodies without a name are numbered.
        joints: Names of the joints of `model`; joints without a name get the name of their body.
        mimics: Names of the joints of URDF that mimic others.
        mended: Changes that were necessary to make the file readable, one line for each.
        said: Warnings that MuJoCo gave while it read the file.
        words: The module `mujoco`, for the names of its enumerations.
    """

    path: Path
    model: Any
    spec: Any
    urdf: bool
    name: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    mimics: tuple[str, ...]
    mended: tuple[str, ...]
    said: tuple[str, ...]
    words: ModuleType

    def kind(self, enumeration: str, value: int) -> str:
        """MuJoCo's name of a number in an enumeration: ``kind("mjtJoint", 3)`` is ``"hinge"``."""
        return getattr(self.words, enumeration)(value).name.partition("_")[2].lower()

    def joint_kind(self, joint: int) -> str:
        """Kind of a joint: ``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``."""
        return self.kind("mjtJoint", self.model.jnt_type[joint])

    def has_mass(self, body: int) -> bool:
        """Whether a body has a mass, or moments of inertia."""
        return bool(self.model.body_mass[body] > LEAST or self.model.body_inertia[body].max() > LEAST)


def read(
    path: str | Path,
    compiler: Mapping[str, Any] | None = None,
    asset_root: str | Path | None = None,
    floats: bool = False,
    packages: Mapping[str, str | Path] | None = None,
) -> Source:
    """Parse and compile a file.

    Args:
        path: The file.
        compiler: Attributes of MJCF's ``<compiler>`` that override attributes in the file.
        asset_root: The folder outside which no file is read; None for the default of `warpbots.robots.load`.
        floats: Whether the roots of URDF float.
        packages: Folders of ROS packages by name, for URDF.

    Raises:
        FileNotFoundError: There is no such file, or no such folder of a package.
        ImportError: MuJoCo or the parser of COLLADA is not installed.
        SceneError: MuJoCo rejects the file; the message quotes the reason.
    """
    path = input_files.readable(path)
    root = input_files.asset_root(path, asset_root)
    if not is_robot(path):
        raise SceneError(
            f"{path}: robots are read from URDF and MJCF, which are XML and begin with '<'; got "
            f"{path.suffix or 'no suffix'} and other content"
        )
    mujoco, said, compiler = import_mujoco(), [], compiler or {}
    compiler_options.refuse_unknown(compiler)
    folders, tree = checked_packages(packages), parsed(path)
    urdf = tree.tag == "robot"
    if urdf:
        opened = functools.partial(_open_urdf, mujoco, path, tree, root, compiler, floats, folders)
    else:
        opened = functools.partial(_open_mjcf, mujoco, path, tree, root, compiler)
    try:
        with _collected_warnings(mujoco, said):
            model, file = _compiled(mujoco, path, opened, urdf, floats)
    except _Refused as fault:
        remedy = compiler_options.remedy(fault.reason) or including_file(path) or _CORRECT
        reason = f"MuJoCo says: {fault.reason}; {remedy}"
        raise SceneError(f"{path} cannot be read as a robot; {reason}") from fault.__cause__
    if model.nbody < 2:
        raise SceneError(f"{path} has no bodies besides the world; a robot needs at least one <body> or <link>")
    switch_off(model, mujoco)
    taken: set[str] = set()
    bodies = tuple(unique(model.body(k).name or f"body {k}", taken) for k in range(model.nbody))
    joints = _joint_names(model, bodies)
    refuse_massless(model, bodies, joints, path)
    return Source(
        path=path, model=model, spec=file.spec, urdf=urdf, bodies=bodies,
        name=path.stem if file.spec.modelname in ("", "MuJoCo Model") else file.spec.modelname,
        joints=joints, mimics=file.mimics, words=mujoco, mended=file.mended, said=tuple(dict.fromkeys(said)),
    )  # fmt: skip


def import_mujoco() -> ModuleType:
    """The module `mujoco`, imported on first use.

    Raises:
        ImportError: MuJoCo is not installed, or too old.
    """
    try:
        import mujoco
    except ImportError as fault:
        raise ImportError(
            "robots are read, written and replayed by MuJoCo, which is not installed; install it with: "
            "pip install 'warpbots[robots]'"
        ) from fault
    refuse_older(mujoco)
    return mujoco


@contextlib.contextmanager
def _collected_warnings(mujoco: ModuleType, notes: list[str]) -> Iterator[None]:
    """Collect the warnings of MuJoCo in `notes`; otherwise MuJoCo writes them to a file in the current folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(notes.append)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yield
        notes += [str(warning.message) for warning in said]
    finally:
        mujoco.set_mju_user_warning(before)


class _Refused(Exception):
    """Raised if MuJoCo cannot read or compile a file.

    Attributes:
        reason: The message of MuJoCo on one line.
    """

    def __init__(self, fault: Exception):
        self.reason = " ".join(str(fault).split()).removeprefix("Error: ")
        super().__init__(self.reason)


def _call(of: Callable[[], Any]) -> Any:
    """Result of `of`, a function that calls MuJoCo.

    Raises:
        _Refused: MuJoCo raises an error.
    """
    try:
        return of()
    except SceneError:
        raise
    except (ValueError, RuntimeError, TypeError, LookupError) as fault:
        raise _Refused(fault) from fault


@dataclasses.dataclass(frozen=True, eq=False)
class _Opened:
    """A robot file before it is compiled.

    Attributes:
        spec: The `mujoco.MjSpec` of the file.
        mended: Changes that were necessary to make the file readable, one line for each.
        weighed: Names of the links of URDF that get the mass of their geometry.
        held: Names of the joints of URDF that become fixed, because they move neither a mass nor a solid.
        mimics: Names of the joints of URDF that mimic others.
    """

    spec: Any
    mended: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    mimics: tuple[str, ...] = ()


def _open_urdf(
    mujoco: ModuleType, path: Path, read: Element, root: Path, compiler: Mapping[str, Any], floats: bool,
    packages: Mapping[str, Path],
) -> _Opened:  # fmt: skip
    """The specification of a URDF file, after `settle_masses` has been applied."""
    tree = copy.deepcopy(read)
    said, following = tree.find("mujoco/compiler"), mimics(tree)
    own = {} if said is None else said.attrib
    painted, mended = colors(tree), normalised(tree, path)
    places = locate_meshes(tree, path, root, compiler.get("meshdir", own.get("meshdir")), packages)
    spec = _call(lambda: mujoco.MjSpec.from_string(ElementTree.tostring(tree, encoding="unicode")))
    set_mesh_files(spec, places)
    for geom in spec.geoms:
        geom.rgba = painted.get(geom.parent.name, geom.rgba)
    _prepare(mujoco, spec, {name: value for name, value in compiler.items() if name != "meshdir"})
    weighed, held = ([], []) if "inertiafromgeom" in {*own, *compiler} else settle_masses(spec, floats)
    return _Opened(spec, tuple(mended), tuple(weighed), tuple(held), following)


def _open_mjcf(mujoco: ModuleType, path: Path, read: Element, root: Path, compiler: Mapping[str, Any]) -> _Opened:
    """The specification of an MJCF file."""
    trees = with_includes(path, read, root)
    tag = trees[path].tag
    if tag != "mujoco":
        remedy = including_file(path) or "load the file that includes it"
        raise SceneError(
            f"{path} is not a complete robot: its root element is <{tag}>, not <robot> or <mujoco>; {remedy}"
        )
    refuse_empty(trees, path)
    refuse_foreign_assets(trees, path, root)
    text, main = modernised(trees), str(path)
    if path.suffix != ".xml":  # MuJoCo recognises MJCF by this ending alone
        main = f"{path}.xml"
        text[main] = text.pop(str(path), None) or path.read_bytes()
    files = mujoco.MjVfs()
    for place, content in text.items():
        files[place] = content
    spec = _call(lambda: mujoco.MjSpec.from_file(main, vfs=files))
    _prepare(mujoco, spec, compiler)
    return _Opened(spec)


def _prepare(mujoco: ModuleType, spec: Any, compiler: Mapping[str, Any]) -> None:
    """Prepare a specification for compilation.

    The options `compiler` are applied, static bodies are not merged, massless bodies get the smallest mass that lets
    them move, and sensors, skins and the image files of textures are removed.
    """
    compiler_options.apply(spec, compiler, mujoco)
    spec.compiler.fusestatic = False
    spec.compiler.boundmass = max(spec.compiler.boundmass, LEAST)
    spec.compiler.boundinertia = max(spec.compiler.boundinertia, LEAST)
    for texture in spec.textures:
        if texture.file or any(texture.cubefiles):
            texture.file, texture.builtin = "", mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.cubefiles = [""] * len(texture.cubefiles)
            texture.width = texture.height = 2
    for part in (*spec.sensors, *spec.skins):
        spec.delete(part)


def _compiled(
    mujoco: ModuleType, path: Path, opened: Callable[[], _Opened], urdf: bool, floats: bool
) -> tuple[Any, _Opened]:
    """The compiled model, and the opened file with all changes.

    If MuJoCo rejects moments of inertia or meshes, they are mended and the file is compiled again.
    """
    file = opened()
    mended = mend_rounding(file.spec)
    try:
        model = file.spec.compile()
    except ValueError:  # after it, the specification is unusable
        file = opened()
        mended = mend_rounding(file.spec) + mend_moments(file.spec, path, floats and urdf)
        replace_refused_meshes(file.spec, mujoco, path.parent / file.spec.meshdir, urdf, mended)
        model = _call(file.spec.compile)
    if _remove_multiple_outputs(file.spec, model, mended):
        model = _call(file.spec.compile)
    return model, dataclasses.replace(file, mended=(*file.mended, *_settled(file, model), *mended))


def _settled(file: _Opened, model: Any) -> Iterator[str]:
    """Lines for the user about links without mass that get a mass, and about joints that become fixed."""
    if file.weighed:
        masses = [float(model.body(name).mass[0]) for name in file.weighed]
        yield (
            f"links without mass that are moved by joints, taken as solids of 1000 kg/m^3: "
            f"{', '.join(map(repr, file.weighed))} ({', '.join(f'{m:.3g}' for m in masses)} kg; {sum(masses):.4g} kg "
            f"in all)"
        )
    if file.held:
        yield f"joints that move neither a mass nor a solid, taken as fixed: {', '.join(map(repr, file.held))}"


def _remove_multiple_outputs(spec: Any, model: Any, mended: list[str]) -> bool:
    """Remove actuators with several controls or forces (MuJoCo 3.11); returns whether there were such actuators.

    After the removal, each actuator has the same index in the arrays of actuators, controls and forces, and in
    keyframes.
    """
    odd = np.flatnonzero((model.actuator_ctrlnum != 1) | (model.actuator_outnum != 1))
    actuators = list(spec.actuators)
    for k in odd:
        mended.append(f"actuator {actuators[k].name or f'actuator {k}'!r}: it has several controls or forces")
        spec.delete(actuators[k])
    return bool(len(odd))


def _joint_names(model: Any, bodies: tuple[str, ...]) -> tuple[str, ...]:
    given = [model.joint(j).name for j in range(model.njnt)]
    taken = {name for name in given if name}
    return tuple(name or unique(bodies[model.jnt_bodyid[j]], taken) for j, name in enumerate(given))
