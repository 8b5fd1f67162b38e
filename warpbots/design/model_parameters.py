"""Parameters of articulated bodies whose shapes have changed."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from warpbots.design.limit_parameters import limit_parameters, matrices
from warpbots.design.mass_properties import MassProperties
from warpbots.design.sampled_solids import mesh_samples
from warpbots.simulation import Simulation
from warpbots.solvers.articulated import Articulated

__all__ = ["BodyShape", "model_parameters"]


@dataclasses.dataclass(frozen=True, eq=False)
class BodyShape:
    """The shape of a body, in the frame of the body; parameters of a model follow from it.

    Attributes:
        mass: Mass, centre of mass and moments of inertia.
        points: Contact points [m], shape (n, 3).
        areas: Areas that the contact points represent [m^2], shape (n,).
        meshes: The meshes of the solid of the body, each as vertices [m], shape (k, 3), and faces, shape (m, 3), int.
    """

    mass: MassProperties
    points: torch.Tensor
    areas: torch.Tensor
    meshes: Sequence[tuple[torch.Tensor, torch.Tensor]]


def model_parameters(
    sim: Simulation[Any], bodies: Mapping[str, BodyShape], origins: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Changed parameters for `Simulation.step` and `rollout`, equal in all worlds.

    All other parameters keep their values.

    Args:
        sim: A simulation with the solver `Articulated`.
        bodies: Shapes by name of the body.
        origins: Origins of joints in the frames of their parent bodies [m], each of shape (3,), by name of the joint.

    Returns:
        Parameters by name, shape (worlds, ...).

    Raises:
        KeyError: There is no such body or joint.
        ValueError: The solver is not `Articulated`, the contact points or the solid of a body differ from those in the
            simulation, or a mesh has left the grid of its distance samples.
        SceneError: The distance samples of a solid miss most of its surface.
    """
    if not isinstance(sim.solver, Articulated):
        raise ValueError(
            f"model_parameters: shapes of bodies are parameters of Articulated, got {type(sim.solver).__name__}"
        )
    robot = sim.model.robot
    rows = [robot.body(name) for name in bodies]
    found = {
        "mass": _put(sim, "mass", rows, [shape.mass.mass for shape in bodies.values()]),
        "center_of_mass": _put(sim, "center_of_mass", rows, [shape.mass.center for shape in bodies.values()]),
        "inertia": _put(sim, "inertia", rows, [shape.mass.inertia for shape in bodies.values()]),
    }
    # a body that nothing can touch has no points in the model
    touching = {
        name: own for name, own in zip(bodies, (robot.contact_points[k] for k in rows), strict=True) if len(own)
    }
    if touching:
        _refuse_other_points(bodies, touching)
        at = np.concatenate(list(touching.values()))
        found["contact_point"] = _put(sim, "contact_point", at, torch.cat([bodies[name].points for name in touching]))
        found["contact_area"] = _put(sim, "contact_area", at, torch.cat([bodies[name].areas for name in touching]))
    carrier = sim.model.solids.body.numpy()
    sampled = [
        own
        for (name, shape), row in zip(bodies.items(), rows, strict=True)
        for own in mesh_samples(sim, name, np.flatnonzero(carrier == row), shape.meshes)
    ]
    if sampled:
        at = np.concatenate([np.arange(samples.start, samples.stop) for samples, _ in sampled])
        found["solid_distance"] = _put(sim, "solid_distance", at, torch.cat([own for _, own in sampled]))
    if origins:
        numbers = {joint.name: i for i, joint in enumerate(robot.joints)}
        if missing := [name for name in origins if name not in numbers]:
            raise KeyError(f"model_parameters: there is no joint {missing[0]!r}; the scene has {', '.join(numbers)}")
        own = [numbers[name] for name in origins]
        pairs = zip(own, origins.values(), strict=True)
        moved = [_in_joint(sim, robot.joints[k].parent, origin) for k, origin in pairs]
        found["joint_position"] = _put(sim, "joint_position", own, moved)
    found |= _centred_frames(sim, found, rows)
    return found | limit_parameters(sim, found, rows)


def _centred_frames(
    sim: Simulation[Any], found: Mapping[str, torch.Tensor], rows: Sequence[int]
) -> dict[str, torch.Tensor]:
    """Positions of the frames of floating bodies and of their joints, moved with the centre of mass.

    This concerns floating bodies whose joint has no `position`, so that its frame is at the centre of mass.
    """
    given = {joint.child for joint in sim.scene.joints if joint.position is not None}
    floating = [k for k in rows if sim.model.robot.bodies[k] not in given]
    if not floating:
        return {}
    moved = (found["center_of_mass"] - sim.parameter("center_of_mass"))[0]
    body_axes, joint_axes = (matrices(sim.parameter(name)[0]) for name in ("body_rotation", "joint_rotation"))
    bodies = sim.parameter("body_position").clone()
    joints = found.get("joint_position", sim.parameter("joint_position")).clone()
    for k in floating:
        shift = body_axes[k] @ moved[k]
        bodies[:, k] = bodies[:, k] - shift
        joints[:, k] = joints[:, k] + joint_axes[k] @ shift
        for child in (i for i, parent in enumerate(sim.model.robot.parents) if parent == k):
            joints[:, child] = joints[:, child] - shift
    return {"body_position": bodies, "joint_position": joints}


def _refuse_other_points(bodies: Mapping[str, BodyShape], touching: Mapping[str, np.ndarray]) -> None:
    for name, own in touching.items():
        if len(own) != len(bodies[name].points):
            raise ValueError(
                f"model_parameters: body {name!r} has {len(own)} contact points in the simulation and "
                f"{len(bodies[name].points)} in the design: leave `points` of the bodies of a design as they are"
            )


def _put(
    sim: Simulation[Any], name: str, rows: Sequence[int] | np.ndarray, own: Sequence[torch.Tensor] | torch.Tensor
) -> torch.Tensor:
    """The parameter `name` with the given rows replaced by `own` in all worlds, shape (worlds, n, ...)."""
    values = sim.parameter(name)
    stacked = (own if isinstance(own, torch.Tensor) else torch.stack(list(own))).to(values)
    row = torch.as_tensor(np.asarray(rows, dtype=np.int64), device=values.device)
    return values.index_copy(1, row, stacked.expand(len(values), *stacked.shape))


def _in_joint(sim: Simulation[Any], parent: str | None, origin: torch.Tensor) -> torch.Tensor:
    """A point given in the frame of the body `parent`, converted to the frame of its joint [m], shape (3,)."""
    if parent is None:
        return origin
    k = sim.model.robot.body(parent)
    q = torch.nn.functional.normalize(sim.parameter("body_rotation")[0, k], dim=0)
    turned = origin + 2.0 * torch.linalg.cross(q[:3], torch.linalg.cross(q[:3], origin) + q[3] * origin)
    return sim.parameter("body_position")[0, k] + turned
