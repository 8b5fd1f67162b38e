"""Test of reading one third-party file; `third_party_files.py` runs the test for many files, in separate processes."""

import ast
import re
import sys
import time
import traceback
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import warpbots as wb  # noqa: E402

__all__ = ["outcome"]

ANSWERS = {"material": wb.Material(1e6), "meters_per_unit": 1.0, "thickness": 1e-3}
"""Answers to refusals that say ``pass name``; if a refusal proposes a value, this value is passed."""

_ASKED = re.compile(r"(?:pass|with) (\w+)(?:=(\{[^{}.]*\}|'[^']*'|True|False))?")
"""Pattern of the argument that a refusal asks for, and of the value that it proposes."""

_NOT_THERE = re.compile(
    r"[Ee]rror opening|cannot be found|[Nn]o such file|there is no (?:file|mesh|such file)|Git LFS|[Cc]ould not open"
)
_EMPTY = re.compile(
    r"has no bodies|is not a complete robot|the file has no body|has no Mesh|has no triangles|has no linear tetrahedra"
)


def outcome(kind: str, path: str, motion: bool) -> dict:
    """Read a file, and describe the outcome as a row of the table.

    Args:
        kind: ``"URDF"``, ``"MJCF"``, ``"USD"`` or ``"mesh"``.
        path: The file.
        motion: Whether to compare the free motion of a robot with MuJoCo's.

    Returns:
        ``outcome``, one of `third_party_files.OUTCOMES`; ``reason``, the sentence of a refusal or the last line of a
        traceback; ``said``, all warnings; ``answers``, the arguments that had to be passed; ``seconds``; and for loaded
        files the number of ``bodies``, the mass in the scene and the mass according to the file [kg], and the deviation
        of the motion from the motion in MuJoCo.
    """
    row = {"path": path, "kind": kind, "outcome": "refused", "reason": "", "said": [], "answers": {}}
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            thing = _answered(kind, path, row["answers"])
            row |= _figures(kind, thing, path, motion, row["answers"])
            row["outcome"] = "loads"
        except (wb.SceneError, wb.SimulationError, OSError, ImportError) as error:
            row["reason"] = str(error)
            row["outcome"] = _refusal(str(error))
        except MemoryError as error:
            row |= {"outcome": "out of memory", "reason": str(error)}
        except Exception:
            row |= {"outcome": "raw traceback", "reason": traceback.format_exc(limit=-4)}
    row["said"] = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    if row["outcome"] == "loads" and (row["answers"] or row["said"]):
        row["outcome"] = "loads, after an answer" if row["answers"] else "loads, with a warning"
    row["answers"] = {name: str(value) for name, value in row["answers"].items()}
    return row | {"seconds": round(time.perf_counter() - start, 2)}


def _answered(kind: str, path: str, answers: dict):
    """Read a file with all arguments that refusals ask for, and add these arguments to `answers`."""
    while True:
        try:
            return _load(kind, path, answers)
        except wb.SceneError as error:
            before = dict(answers)
            for name, said in _ASKED.findall(str(error)):
                if said:
                    answers[name] = _joined(answers.get(name), ast.literal_eval(said))
                elif name in ANSWERS:
                    answers.setdefault(name, ANSWERS[name])
            if answers == before:
                raise


def _joined(old, new):
    """Replace an earlier answer by a later answer; if both are dictionaries, merge them."""
    return {**(old or {}), **new} if isinstance(new, dict) else new


def _load(kind: str, path: str, answers: dict):
    if kind in ("URDF", "MJCF"):
        return wb.robots.load(path, **answers)
    if kind == "USD":
        return wb.usd.read(path, **answers)
    return wb.shapes.load_mesh(path, **answers)


def _refusal(sentence: str) -> str:
    if _NOT_THERE.search(sentence):
        return "a file is not there"
    return "holds no bodies" if _EMPTY.search(sentence) else "refused"


def _figures(kind: str, thing, path: str, motion: bool, answers: dict) -> dict:
    if kind == "mesh":
        lower, upper = thing.bounds
        return {"size": float(np.max(np.subtract(upper, lower)))}
    row = {"bodies": len(thing.bodies), "mass": _mass(thing), "mass_said": _mass_said(kind, path)}
    if motion and kind != "USD":
        from motion import apart

        try:
            row |= apart(path, answers)
        except (wb.SceneError, wb.SimulationError) as error:
            row["motion_note"] = str(error)
    return row


def _mass(scene: wb.Scene) -> float | None:
    """Mass of all rigid bodies [kg]; None if there are soft bodies."""
    from warpbots.solvers.articulated.inertia import body_inertia

    if len(scene.rigid) < len(scene.bodies):
        return None
    found = [body_inertia(body) for body in scene.rigid]
    return float(sum(inertia.mass for inertia in found if inertia is not None))


def _mass_said(kind: str, path: str) -> float | None:
    """Mass of all bodies according to the file or to MuJoCo [kg]; None if neither gives a mass."""
    if kind == "URDF":
        try:
            masses = ElementTree.parse(path).getroot().iterfind("./{*}link/{*}inertial/{*}mass")
        except ElementTree.ParseError:  # our reader accepts more than valid XML
            return None
        return sum(max(float(mass.get("value", 0)), 0.0) for mass in masses)
    if kind == "USD":
        from pxr import Usd, UsdPhysics

        stage = Usd.Stage.Open(path)
        prims = [p for p in stage.Traverse(Usd.TraverseInstanceProxies()) if p.HasAPI(UsdPhysics.RigidBodyAPI)]
        bodies = [(p, UsdPhysics.RigidBodyAPI(p)) for p in prims]
        moving = [
            p for p, body in bodies if body.GetRigidBodyEnabledAttr().Get() and not body.GetKinematicEnabledAttr().Get()
        ]
        masses = [UsdPhysics.MassAPI(p).GetMassAttr().Get() or 0.0 for p in moving]
        unit = UsdPhysics.GetStageKilogramsPerUnit(stage)
        return unit * sum(masses) if masses and min(masses) > 0.0 else None
    import mujoco

    try:
        return float(mujoco.mj_getTotalmass(mujoco.MjModel.from_xml_path(path)))
    except ValueError:  # a model that our reader repairs
        return None
