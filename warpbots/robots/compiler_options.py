"""Attributes of MJCF's ``<compiler>`` that a user gives in the place of the file's, and MuJoCo's remedies."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from warpbots.robots.mujoco_versions import discard_visual
from warpbots.scene import SceneError
from warpbots.scene.field_types import shown

__all__ = ["follow", "refuse_unknown", "remedy"]

_YES = ("balanceinertia", "discardvisual", "fitaabb")
_NUMBERS = ("boundmass", "boundinertia", "settotalmass")
_CHOICES = ("false", "true", "auto")

_REMEDIES = {
    "Error opening file": "no such file is there; put it where the file says, or say where meshes lie with "
    "compiler={'meshdir': ...}",
    "A + B >= C": "correct them, or pass compiler={'balanceinertia': True}, with which each becomes their mean",
    "positive eigenvalues": "correct its moments of inertia",
    "mesh volume is too small": "give the <mesh> inertia='convex' or 'shell', or the body an <inertial>",
    "Schema violation": "the file may be meant for another version of MuJoCo: load and save it there",
    "no longer supported": "the file is meant for an older version of MuJoCo: load and save it there",
}


def refuse_unknown(compiler: Mapping[str, Any]) -> None:
    """Raise if there is something else than what `follow` knows.

    Raises:
        SceneError: There is.
    """
    known = (*_YES, *_NUMBERS, "inertiafromgeom", "inertiagrouprange", "meshdir")
    for name, value in compiler.items():
        what = f"load_robot: compiler[{name!r}]"
        if name not in known:
            raise SceneError(f"{what}: there is no such attribute here; there are {', '.join(sorted(known))}")
        fits = {
            **dict.fromkeys(_YES, (isinstance(value, bool), "True or False")),
            **dict.fromkeys(_NUMBERS, (_is_number(value), "a number")),
            "inertiafromgeom": (str(value).lower() in _CHOICES, "True, False or 'auto'"),
            "inertiagrouprange": (_is_range(value), "two numbers of groups"),
            "meshdir": (isinstance(value, str), "a folder"),
        }  # fmt: skip
        if not fits[name][0]:
            raise SceneError(f"{what} must be {fits[name][1]}, got {shown(value)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")


def _is_range(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(v, int) for v in value)


def follow(spec: Any, compiler: Mapping[str, Any], words: ModuleType) -> None:
    """Set what a user says in an `mujoco.MjSpec`."""
    for name, value in compiler.items():
        if name == "discardvisual":
            if value:
                discard_visual(spec)
        elif name == "meshdir":
            spec.meshdir = value
        elif name == "inertiafromgeom":
            choice = f"mjINERTIAFROMGEOM_{str(value).upper()}"
            spec.compiler.inertiafromgeom = getattr(words.mjtInertiaFromGeom, choice)
        else:
            setattr(spec.compiler, name, value)


def remedy(reason: str) -> str:
    """What a user can do about what MuJoCo says; empty where that says it itself."""
    return next((remedy for part, remedy in _REMEDIES.items() if part in reason), "")
