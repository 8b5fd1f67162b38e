"""Stiffness and damping of joint limits for bodies whose shape has changed, with gradients.

Stiffness and damping follow from the inertia that a joint carries, by the law of
`warpbots.solvers.articulated.joint_limits`; this module evaluates the law with masses and frames as tensors.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from warpbots.scene import Joint
from warpbots.simulation import Simulation
from warpbots.solvers.articulated.joint_limits import TIME, drive_stiffness, is_angle

__all__ = ["limit_parameters", "matrices"]


def limit_parameters(
    sim: Simulation[Any], found: Mapping[str, torch.Tensor], changed: Iterable[int]
) -> dict[str, torch.Tensor]:
    """Compute the stiffness and the damping of joint limits after the shapes of bodies have changed.

    Only values that a joint does not specify are computed, and only for joints that carry a body in `changed`.

    Args:
        sim: A simulation with the solver `Articulated`.
        found: Parameters of bodies and joints for the new shape, by name; missing parameters are taken from the model.
        changed: Indices of the bodies whose mass has changed, or whose joints to children have moved.

    Returns:
        ``limit_stiffness`` and ``limit_damping``, shape (worlds, n_velocities); empty if no limit changes.
    """
    robot, changed = sim.model.robot, set(changed)
    open_joints = [
        (k, joint, beyond)
        for k, joint in enumerate(robot.joints)
        if joint.lower is not None and None in (joint.limit_stiffness, joint.limit_damping)
        if changed.intersection(beyond := _beyond(robot.parents, k))
    ]
    if not open_joints or "limit_stiffness" not in sim.parameters():
        return {}
    place = _Places(sim, found)
    stiffness, damping = (sim.parameter(name).clone() for name in ("limit_stiffness", "limit_damping"))
    for k, joint, beyond in open_joints:
        at = robot.velocities[joint.name]
        inertia = place.inertia(k, joint, beyond)
        if joint.limit_stiffness is None:
            drive = torch.as_tensor(drive_stiffness(sim.scene, joint)).to(inertia)
            stiffness[:, at] = torch.maximum(inertia / TIME**2, drive)
        if joint.limit_damping is None:
            damping[:, at] = 2.0 * torch.sqrt(stiffness[:, at].clone() * inertia)
    return {"limit_stiffness": stiffness, "limit_damping": damping}


def _beyond(parents: tuple[int, ...], k: int) -> list[int]:
    """Indices of body `k` and of all bodies that body `k` carries."""
    carried = [k]
    for own in carried:
        carried += [child for child, parent in enumerate(parents) if parent == own]
    return carried


class _Places:
    """Computes the inertia that joints carry, with all joint coordinates at zero."""

    def __init__(self, sim: Simulation[Any], found: Mapping[str, torch.Tensor]):
        self.parents = sim.model.robot.parents
        names = ("joint_position", "body_position", "mass", "center_of_mass", "inertia")
        self.values = {name: found.get(name, sim.parameter(name))[0] for name in names}
        self.axes = {name: matrices(sim.parameter(name)[0]) for name in ("joint_rotation", "body_rotation")}

    def inertia(self, k: int, joint: Joint, beyond: list[int]) -> torch.Tensor:
        """Inertia that joint `k` carries, for each of its velocities [kg m^2 or kg], shape (velocities,)."""
        masses, about = self.values["mass"], 0.0
        identity = torch.eye(3).to(masses)
        frames = {k: (masses.new_zeros(3), identity)}
        for own in beyond:
            p, R = frames[own] if own == k else self._frame(own, *frames[self.parents[own]])
            frames[own] = p, R
            turned = R @ self.axes["body_rotation"][own]
            r = p + R @ self.values["body_position"][own] + turned @ self.values["center_of_mass"][own]
            about = about + turned @ self.values["inertia"][own] @ turned.T
            about = about + masses[own] * ((r @ r) * identity - torch.outer(r, r))
        largest, mass = torch.linalg.eigvalsh(about)[-1], masses[beyond].sum()
        armature = torch.as_tensor(np.array(joint.armature)).to(masses)
        return torch.where(torch.as_tensor(is_angle(joint)).to(masses.device), largest, mass) + armature

    def _frame(self, k: int, p: torch.Tensor, R: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Origin and axes of the frame of joint `k`, from origin `p` and axes `R` of the joint of its parent body."""
        return p + R @ self.values["joint_position"][k], R @ self.axes["joint_rotation"][k]


def matrices(rotations: torch.Tensor) -> torch.Tensor:
    """Rotation matrices of quaternions (x, y, z, w), shape (n, 3, 3)."""
    q = torch.nn.functional.normalize(rotations, dim=-1)
    x, y, z, w = q.unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
