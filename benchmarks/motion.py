"""Free motion of a robot compared with MuJoCo, without contact, limits, motors, dry friction and equalities."""

import dataclasses
import inspect
from typing import Any

import numpy as np
import torch

import warpbots as wb
from warpbots.robots.mujoco_source import Source, read

__all__ = ["apart"]

SECONDS = 0.05
"""Duration [s]."""
AGREED = 1e-4
"""Largest difference between MuJoCo's motions with two step lengths for them to count as equal."""


def apart(path: str, answers: dict) -> dict:
    """Deviation of the poses of bodies from the poses in MuJoCo after 50 ms.

    Both motions start from equal joint coordinates and small random velocities.

    Returns:
        ``motion``, the largest difference of a coordinate of a body's position [m] or of an entry of its rotation [1];
        or ``motion_note``, the reason why the motions cannot be compared.
    """
    known = inspect.signature(read).parameters
    source = read(path, **{name: value for name, value in answers.items() if name in known})
    model = source.model
    reason = _unfair(model)
    if reason:
        return {"motion_note": reason}
    scene = wb.robots.load(path, contact_points=0, **answers)
    free = [dataclasses.replace(joint, lower=None, upper=None) for joint in scene.joints]
    sim = wb.Simulation(dataclasses.replace(scene, joints=free, actuators=()), wb.Articulated(), dt=2.5e-4)
    robot = sim.model.robot
    q, v, start, velocity = _start(source, robot)
    theirs = _theirs(model, start, velocity)
    if theirs is None:
        return {"motion_note": "MuJoCo's own motion depends on its step"}
    state = sim.state(q=torch.as_tensor(q)[None], qd=torch.as_tensor(v)[None])
    with torch.no_grad():
        readings = sim.sense(sim.rollout(None, round(SECONDS / sim.dt), state).final)
    at = [robot.bodies.index(name) for name in source.bodies[1:]]
    ours = np.concatenate([readings.position[0, at].numpy(), readings.rotation[0, at].reshape(len(at), 9).numpy()], 1)
    return {"motion": float(np.abs(ours - theirs).max())}


def _unfair(model: Any) -> str:
    """Names of features of the file that affect free motion in MuJoCo and are not simulated here."""
    parts = {
        "tendons": model.ntendon, "flexes": model.nflex, "plugins": model.nplugin,
        "compensation of gravity": model.body_gravcomp.any(),
        "a medium": model.opt.density or model.opt.viscosity or model.opt.wind.any(),
    }  # fmt: skip
    return ", ".join(name for name, there in parts.items() if there)


def _start(source: Source, robot) -> tuple[np.ndarray, ...]:
    """Joint coordinates inside limits and small joint velocities, in the order here and in the order of MuJoCo."""
    model = source.model
    q, v = robot.start.copy(), 0.3 * np.random.default_rng(0).normal(size=robot.freedom)
    start, velocity = model.qpos0.copy(), np.zeros(model.nv)
    for j, name in enumerate(source.joints):
        at, dofs = robot.coordinates[name], robot.velocities[name]
        kind, a, b = source.joint_kind(j), model.jnt_qposadr[j], model.jnt_dofadr[j]
        own = q[at]
        if model.jnt_limited[j] and kind in ("hinge", "slide"):
            own = np.clip(own, *model.jnt_range[j])
        q[at] = own
        turned = own.copy()
        if kind in ("ball", "free"):
            turned[-4:] = np.roll(own[-4:], 1)
        start[a : a + len(own)] = turned
        velocity[b : b + dofs.stop - dofs.start] = v[dofs]
    return q, v, start, velocity


def _theirs(model: Any, start: np.ndarray, velocity: np.ndarray) -> np.ndarray | None:
    """Final position and rotation of every body in MuJoCo, shape (bodies, 12); None if they depend on the step.

    The function uses the explicit integrator of fourth order if this is stable; stiff dampers need the implicit
    integrator of MuJoCo.
    """
    import mujoco

    off, kinds = mujoco.mjtDisableBit, mujoco.mjtIntegrator
    for part in (
        off.mjDSBL_CONTACT,
        off.mjDSBL_LIMIT,
        off.mjDSBL_EQUALITY,
        off.mjDSBL_FRICTIONLOSS,
        off.mjDSBL_ACTUATION,
    ):
        model.opt.disableflags |= part
    for model.opt.integrator, steps in ((kinds.mjINT_RK4, (1e-4, 2.5e-5)), (kinds.mjINT_IMPLICIT, (1e-5, 5e-6))):
        ends = []
        for model.opt.timestep in steps:
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = start, velocity
            mujoco.mj_step(model, data, round(SECONDS / model.opt.timestep))
            mujoco.mj_kinematics(model, data)
            ends.append(np.concatenate([data.xpos, data.xmat], axis=1)[1:])
            if any(warning.number for warning in data.warning):
                ends[-1] = np.full_like(ends[-1], np.nan)
        if np.abs(ends[0] - ends[1]).max() < AGREED:
            return ends[1]
    return None
