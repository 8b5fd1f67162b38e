"""Repeats a motion of a scene in another engine, MuJoCo: applies the same controls, open loop."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.robots.mjcf_writer import START
from warpbots.robots.mujoco_source import import_mujoco
from warpbots.robots.written_joints import WrittenJoint, written_joints
from warpbots.scene import Scene, SceneError, Servo
from warpbots.scene.field_types import checked

__all__ = ["MujocoReplay", "replay_in_mujoco"]


@dataclasses.dataclass(frozen=True, eq=False)
class MujocoReplay:
    """The motion of a scene in MuJoCo.

    Attributes:
        time: Times of the start and of the ends of all control intervals [s], shape (steps + 1,).
        q: Joint coordinates at each entry of `time`, in the form of a state of `warpbots.Articulated`, shape (steps +
            1, n_coordinates).
        contacts: Number of contacts of MuJoCo at each entry of `time`, shape (steps + 1,).
    """

    time: np.ndarray
    q: np.ndarray
    contacts: np.ndarray


@checked
def replay_in_mujoco(
    path: str | Path,
    scene: Scene,
    control: np.ndarray,
    interval: float,
    *,
    timestep: float | None = None,
    integrator: str = "implicitfast",
) -> MujocoReplay:
    """Simulate the file of a scene in MuJoCo under given controls.

    Compare ``replay_in_mujoco("hand.xml", scene, motion.control[0].numpy(), sim.dt).q`` with the coordinates of the
    motion itself. Without contact, both motions agree up to time-step errors; with contact, the contact models differ,
    see `warpbots.robots.save`.

    Args:
        path: An MJCF file that `warpbots.robots.save` wrote.
        scene: The scene that was saved in this file.
        control: Controls u, constant during an interval, shape (steps, channels).
        interval: Time between two controls [s].
        timestep: Longest time step of MuJoCo [s]; None for the time step in the file. Every interval is
            divided into equal steps.
        integrator: MuJoCo's integrator: ``"Euler"``, ``"RK4"``, ``"implicit"`` or ``"implicitfast"``.

    Raises:
        ImportError: MuJoCo is not installed.
        SceneError: The file does not have the joints and motors of the scene, controls have the wrong shape, or MuJoCo
            finds the motion unstable.
    """
    mujoco = import_mujoco()
    control = np.asarray(control, dtype=np.float64)
    if control.ndim != 2 or control.shape[1] != len(scene.actuators):
        raise SceneError(
            f"replay_in_mujoco: control must have shape (steps, {len(scene.actuators)}), got {control.shape}"
        )
    if not interval > 0.0 or (timestep is not None and not timestep > 0.0):
        raise SceneError(f"replay_in_mujoco: times must be positive [s], got {interval:g} and {timestep}")
    model, joints = mujoco.MjModel.from_xml_path(str(path)), written_joints(scene)
    _refuse_other(path, model, scene, joints)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    steps = math.ceil(interval / (timestep or model.opt.timestep) * (1.0 - 1e-9))
    model.opt.timestep = interval / steps
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, model.key(START).id)
    mujoco.mj_forward(model, data)
    coordinates, contacts = [_coordinates(model, data, joints)], [data.ncon]
    for u in control:
        data.ctrl[:] = [_command(motor, value) for motor, value in zip(scene.actuators, u, strict=True)]
        mujoco.mj_step(model, data, steps)
        if data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number:
            raise SceneError(
                f"{path}: MuJoCo's motion is unstable at {data.time:g} s with steps of {model.opt.timestep:.3g} s; use "
                f"a shorter timestep"
            )
        coordinates.append(_coordinates(model, data, joints))
        contacts.append(data.ncon)
    return MujocoReplay(interval * np.arange(len(control) + 1), np.array(coordinates), np.array(contacts))


def _command(motor: Any, u: float) -> float:
    """The control of MuJoCo that corresponds to the control `u` of the scene."""
    return motor.target + u * motor.reach if isinstance(motor, Servo) else u


def _refuse_other(path: str | Path, model: Any, scene: Scene, joints: list[WrittenJoint]) -> None:
    there = [model.joint(j).name for j in range(model.njnt)], [model.actuator(k).name for k in range(model.nu)]
    wanted = [p.name for w in joints for p in w.pieces], [a.name for a in scene.actuators]
    if there != wanted:
        raise SceneError(
            f"{path} has the joints {there[0]} and motors {there[1]}, the scene has {wanted[0]} and {wanted[1]}; write "
            f"it with wb.robots.save"
        )


def _coordinates(model: Any, data: Any, joints: list[WrittenJoint]) -> np.ndarray:
    """MuJoCo's coordinates, converted to the coordinates q of a state of `warpbots.Articulated`."""
    q = np.zeros(sum(len(w.start) for w in joints))
    for written in joints:
        own = [written.from_file(p, data.joint(p.name).qpos) for p in written.pieces]
        q[written.coordinates] = np.concatenate([np.zeros(0), *own])
    return q
