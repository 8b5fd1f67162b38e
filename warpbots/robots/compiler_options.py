"""Applies attributes of MJCF's ``<compiler>`` that the user overrides, and suggests remedies for errors of MuJoCo."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from warpbots.robots.mujoco_versions import discard_visual
from warpbots.scene import SceneError
from warpbots.scene.field_types import shown

__all__ = ["apply", "refuse_unknown", "remedy"]

_SWITCHES = ("balanceinertia", "discardvisual", "fitaabb")
_NUMBERS = ("boundmass", "boundinertia", "settotalmass")
_CHOICES = ("false", "true", "auto")

_REMEDIES = {
    "Error opening file": "there is no such file; put it where the robot file says, or give its folder with "
    "compiler={'meshdir': ...}",
    "A + B >= C": "correct them, or pass compiler={'balanceinertia': True}, which sets each to their mean",
    "positive eigenvalues": "correct its moments of inertia",
    "mesh volume is too small": "give the <mesh> inertia='convex' or 'shell', or the body an <inertial>",
    "Schema violation": "the file may be meant for another version of MuJoCo: load and save it there",
    "no longer supported": "the file is meant for an older version of MuJoCo: load and save it there",
}


def refuse_unknown(compiler: Mapping[str, Any]) -> None:
    """Raise if `compiler` has an attribute that `apply` does not support.

    Raises:
        SceneError: An attribute is unknown, or its value is of the wrong type.
    """
    known = (*_SWITCHES, *_NUMBERS, "inertiafromgeom", "inertiagrouprange", "meshdir")
    for name, value in compiler.items():
        what = f"load: compiler[{name!r}]"
        if name not in known:
            raise SceneError(f"{what}: there is no such attribute; known are {', '.join(sorted(known))}")
        fits = {
            **dict.fromkeys(_SWITCHES, (isinstance(value, bool), "True or False")),
            **dict.fromkeys(_NUMBERS, (_is_number(value), "a number")),
            "inertiafromgeom": (str(value).lower() in _CHOICES, "True, False or 'auto'"),
            "inertiagrouprange": (_is_range(value), "two group numbers"),
            "meshdir": (isinstance(value, str), "a folder"),
        }  # fmt: skip
        if not fits[name][0]:
            raise SceneError(f"{what} must be {fits[name][1]}, got {shown(value)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")


def _is_range(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(v, int) for v in value)


def apply(spec: Any, compiler: Mapping[str, Any], words: ModuleType) -> None:
    """Set the attributes `compiler` in `spec`, a `mujoco.MjSpec`; `words` is the module `mujoco`."""
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
    """Remedy for an error message of MuJoCo; empty if no remedy is known."""
    return next((remedy for part, remedy in _REMEDIES.items() if part in reason), "")
