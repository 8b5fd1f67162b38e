"""A robot file as MuJoCo's own parser and compiler understand it."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from warpbots.scene import SceneError

__all__ = ["Source", "matrix", "read", "unique"]

_LEAST = 2e-15
"""Mass [kg] and moment [kg m^2] that MuJoCo gives to what has none, so that it may move; no body weighs so little."""


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A compiled file.

    Attributes:
        path: Where it was.
        model: Its `mujoco.MjModel`.
        urdf: Whether it is URDF, rather than MJCF.
        name: What it calls itself.
        bodies: Names of its bodies, the world first; what has no name is numbered.
        joints: Names of its joints; what has no name is called after its body.
        mimics: Names of the joints of URDF that follow others.
        notes: What MuJoCo said of it.
        words: The module `mujoco`, whose enumerations name kinds.
    """

    path: Path
    model: Any
    urdf: bool
    name: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    mimics: tuple[str, ...]
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
        """Whether a body has a mass."""
        return bool(self.model.body_mass[body] > _LEAST)


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


def read(path: str | Path) -> Source:
    """Parse and compile a file.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: MuJoCo is not installed.
        SceneError: MuJoCo refuses the file; the message has its reason.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; paths are relative to {Path.cwd().name}/")
    if path.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        raise SceneError(f"{path}: robots are read from URDF (.urdf) and MJCF (.xml), got {path.suffix or 'no suffix'}")
    mujoco = _mujoco()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        spec = _asked(path, lambda: mujoco.MjSpec.from_file(str(path)))
        urdf = _urdf(path)
        _prepare(spec)
        if urdf is not None:
            _find_meshes(spec, urdf, path)
        model = _asked(path, spec.compile)
    if model.nbody < 2:
        raise SceneError(f"{path} holds no bodies beside the world; a robot needs at least one <body> or <link>")
    taken: set[str] = set()
    bodies = tuple(unique(model.body(k).name or f"body {k}", taken) for k in range(model.nbody))
    return Source(
        path=path, model=model, urdf=urdf is not None, bodies=bodies,
        name=path.stem if spec.modelname in ("", "MuJoCo Model") else spec.modelname,
        joints=_joint_names(model, bodies), mimics=_mimics(urdf), words=mujoco,
        notes=tuple(str(w.message) for w in said),
    )  # fmt: skip


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as fault:
        raise ImportError(
            "robots are read by MuJoCo's parser, which is not installed; get it with: pip install 'warpbots[robots]'"
        ) from fault
    return mujoco


def _asked(path: Path, of: Callable[[], Any]) -> Any:
    """What MuJoCo answers, or its own sentence of why not."""
    try:
        return of()
    except (ValueError, RuntimeError, TypeError, LookupError) as fault:
        reason = " ".join(str(fault).split()).removeprefix("Error: ")
        raise SceneError(f"{path} cannot be read as a robot; MuJoCo says: {reason}") from fault


def _urdf(path: Path) -> Any | None:
    """Root of the XML of a URDF file; None for MJCF.

    Raises:
        SceneError: It is no XML.
    """
    from xml.etree import ElementTree

    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError, LookupError) as fault:  # MuJoCo takes some that are no XML
        raise SceneError(f"{path} cannot be read as XML: {fault}; see its first line and its encoding") from fault
    return root if root.tag == "robot" else None


def _mimics(urdf: Any | None) -> tuple[str, ...]:
    joints = () if urdf is None else urdf.iter("joint")
    return tuple(joint.get("name", "") for joint in joints if joint.find("mimic") is not None)


def _prepare(spec: Any) -> None:
    """Keep what MuJoCo would merge, let massless bodies move, and leave sensors out."""
    spec.compiler.fusestatic = False
    spec.compiler.boundmass = max(spec.compiler.boundmass, _LEAST)
    spec.compiler.boundinertia = max(spec.compiler.boundinertia, _LEAST)
    for sensor in list(spec.sensors):
        if hasattr(spec, "delete"):
            spec.delete(sensor)
        else:
            sensor.delete()


def _find_meshes(spec: Any, urdf: Any, path: Path) -> None:
    """Say where meshes are, of which MuJoCo keeps all that URDF says of their places, or the name alone."""
    said = {element.get("filename", "") for element in urdf.iter("mesh")}
    for mesh in spec.meshes:
        for file in said:
            place = _place(file, path) if mesh.file in (file, Path(file).name) else None
            if place is not None:
                mesh.file, spec.strippath = str(place), False


def _place(file: str, path: Path) -> Path | None:
    """Where a file is that URDF at `path` names, next to it or, in a package, in or above its folder; None if not."""
    inside = file.removeprefix("package://").removeprefix("file://")
    _, _, rest = inside.partition("/")
    folders = path.resolve().parents
    packages = folders if file.startswith("package://") else ()
    for place in (folders[0] / inside, *(folder / part for folder in packages for part in (inside, rest) if part)):
        if place.is_file():
            return place
    return None


def _joint_names(model: Any, bodies: tuple[str, ...]) -> tuple[str, ...]:
    given = [model.joint(j).name for j in range(model.njnt)]
    taken = {name for name in given if name}
    return tuple(name or unique(bodies[model.jnt_bodyid[j]], taken) for j, name in enumerate(given))
