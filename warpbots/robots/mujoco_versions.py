"""Where versions of MuJoCo from 3.3.0 on differ in what is asked of them here: the only place that asks for it."""

from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["LATER_FIELDS", "delete", "discard_visual", "field", "virtual_files"]

LATER_FIELDS = {
    "actuator_delay": "3.5.0",
    "actuator_armature": "3.7.0",
    "actuator_damping": "3.7.0",
    "dof_dampingpoly": "3.7.0",
    "jnt_stiffnesspoly": "3.7.0",
    "actuator_ctrlnum": "3.11.0",
    "actuator_outnum": "3.11.0",
    "geom_adhesion": "3.11.0",
    "geom_surfacevel": "3.11.0",
    "jnt_springyield": "4.0.0",
}
"""Fields of `mujoco.MjModel`, and the first version that has them; a file for an earlier one cannot set them."""

_COUNTS = {"actuator": "nu", "dof": "nv", "geom": "ngeom", "jnt": "njnt"}


def field(model: Any, name: str, default: float = 0.0) -> np.ndarray:
    """A field of an `mujoco.MjModel`; before the version that introduced it, `default` for each element."""
    if name in LATER_FIELDS and not hasattr(model, name):
        return np.full(getattr(model, _COUNTS[name.partition("_")[0]]), default)
    return getattr(model, name)


def delete(spec: Any, element: Any) -> None:
    """Take an element out of an `mujoco.MjSpec`."""
    if hasattr(spec, "delete"):  # 3.3.4
        spec.delete(element)
    else:
        element.delete()


def discard_visual(spec: Any) -> None:
    """Take geoms that are for display alone out of an `mujoco.MjSpec`, from 3.16.0 on; they change no motion."""
    if hasattr(spec, "discard_visual"):
        spec.discard_visual()


def virtual_files(mujoco: ModuleType, texts: dict[str, bytes]) -> dict[str, Any]:
    """Arguments of `MjSpec.from_file` that let it find `texts` by their paths instead of the files on disk.

    Before 3.8.1 there are none, and the files are read as they are: those versions accept what `texts` leaves out.
    """
    if not texts or not hasattr(mujoco, "MjVfs"):
        return {}
    files = mujoco.MjVfs()
    for path, text in texts.items():
        files[path] = text
    return {"vfs": files}
