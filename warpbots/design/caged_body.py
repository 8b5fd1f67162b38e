"""Rigid bodies whose meshes follow the handles of cages, and parameters of these bodies for `warpbots.Articulated`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from warpbots.design.cage import Cage
from warpbots.design.mass_properties import closed_mass_properties
from warpbots.design.mesh_arrays import check_mesh, refuse_open
from warpbots.design.model_parameters import BodyShape, model_parameters
from warpbots.design.surface_points import SurfacePoints, surface_points
from warpbots.scene import Cloud, RigidBody
from warpbots.scene.field_types import checked
from warpbots.scene.shapes import TriangleMesh
from warpbots.simulation import Simulation

__all__ = ["CagedBody", "designed_parameters"]


class CagedBody:
    """A rigid body whose mesh is in a cage.

    The weights of the vertices are computed once; afterwards a design moves the handles. All positions are in the frame
    of the body; this frame does not move with the handles.

    Attributes:
        name: Name of the body.
        vertices: Vertices of the mesh of the body with the handles at rest [m], shape (n, 3), float64.
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
        cage: The cage.
        density: Density [kg/m^3].
        contacts: Contact points that move with the mesh; None for a body without contact points.
    """

    @checked
    def __init__(
        self,
        name: str,
        vertices: np.ndarray,
        faces: np.ndarray,
        cage: Cage,
        density: float = 1000.0,
        points: int | SurfacePoints = 0,
    ):
        """Compute the weights of the vertices.

        Args:
            name: Name of the body.
            vertices: Vertices of a closed mesh within the cage [m], shape (n, 3).
            faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
            cage: The cage.
            density: Density [kg/m^3].
            points: Approximate number of contact points, which are then spread over the mesh; or the contact points
                themselves, such as ``surface_points(vertices, faces[some], 100)`` for a part of the mesh.

        Raises:
            ValueError: The mesh is open, is not within the cage, or has no volume.
        """
        check_mesh(vertices, faces, f"CagedBody {name!r}")
        refuse_open(vertices, faces, f"CagedBody {name!r}")
        if not density > 0.0:
            raise ValueError(f"CagedBody {name!r}: density must be positive [kg/m^3], got {density:g}")
        if not isinstance(points, SurfacePoints) and points < 0:
            raise ValueError(f"CagedBody {name!r}: points must be a number of points >= 0, got {points}")
        self.name, self.cage, self.density = name, cage, density
        self.vertices = torch.tensor(np.asarray(vertices), dtype=torch.float64)
        self.faces = torch.tensor(np.asarray(faces), dtype=torch.int64)
        volume = closed_mass_properties(self.vertices, self.faces).volume.item()
        if not volume > 0.0:
            raise ValueError(
                f"CagedBody {name!r}: its mesh encloses {volume:.3g} m^3, which must be positive: it must be closed, "
                f"with faces counter-clockwise seen from outside"
            )
        try:
            self.weights = cage.weights(self.vertices)
        except ValueError as fault:
            raise ValueError(f"CagedBody {name!r}: {fault}") from None
        if isinstance(points, SurfacePoints):
            self.contacts: SurfacePoints | None = points
        else:
            self.contacts = surface_points(vertices, faces, points) if points else None

    @property
    def rest(self) -> torch.Tensor:
        """The handles at rest [m], shape (k, 3)."""
        return torch.tensor(self.cage.handles)

    @checked
    def deformed(self, handles: torch.Tensor) -> torch.Tensor:
        """Vertices of the mesh with moved handles [m], shape (n, 3).

        Args:
            handles: Positions of the handles [m], shape (k, 3).

        Raises:
            ValueError: `handles` has the wrong shape, or turns the mesh inside out; the message names the handle that
                contributes most to that.
        """
        if tuple(handles.shape) != self.cage.handles.shape:
            raise ValueError(
                f"CagedBody {self.name!r}: handles must have shape {self.cage.handles.shape}, got "
                f"{tuple(handles.shape)}"
            )
        vertices = self.weights @ handles.to(self.weights)
        volume = closed_mass_properties(vertices.detach(), self.faces).volume.item()
        if not volume > 0.0:
            at = self._culprit(handles.detach())
            raise ValueError(
                f"CagedBody {self.name!r}: its handles turn it inside out, the mesh encloses {volume:.3g} m^3; handle "
                f"{at} at {handles[at].tolist()} m, at rest at {self.cage.handles[at].tolist()} m, contributes most: "
                f"change the design less"
            )
        return vertices

    def _culprit(self, handles: torch.Tensor) -> int:
        """Index of the handle that reduces the volume most.

        The reduction is estimated with the gradient of the volume half-way between rest and `handles`.
        """
        with torch.enable_grad():
            half = (0.5 * (self.rest + handles.to(self.rest))).requires_grad_()
            volume = closed_mass_properties(self.weights @ half, self.faces).volume
            (slope,) = torch.autograd.grad(volume, half)
        return int((slope * (handles.to(self.rest) - self.rest)).sum(dim=1).argmin())

    def carried(self, points: Sequence[Sequence[float]] | torch.Tensor, handles: torch.Tensor) -> torch.Tensor:
        """Positions of points that move with the handles, such as origins of joints [m], shape (n, 3).

        Args:
            points: Positions of the points with the handles at rest, on the cage or in it [m], shape (n, 3).
            handles: Positions of the handles [m], shape (k, 3).

        Raises:
            ValueError: A point is outside of the cage.
        """
        at_rest = torch.as_tensor(points, dtype=torch.float64)
        return self.cage.weights(at_rest) @ handles.to(torch.float64)

    def shape(self, handles: torch.Tensor) -> BodyShape:
        """The shape of the body, from which parameters of a model follow; differentiable with respect to the handles.

        Args:
            handles: Positions of the handles [m], shape (k, 3).

        Raises:
            ValueError: See `deformed`.
        """
        vertices = self.deformed(handles)
        points, areas = vertices.new_zeros(0, 3), vertices.new_zeros(0)
        if self.contacts is not None:
            points, areas = self.contacts.positions(vertices), self.contacts.areas(vertices)
        mass = closed_mass_properties(vertices, self.faces, self.density)
        return BodyShape(mass, points, areas, [(vertices, self.faces)])

    def rigid_body(self, handles: torch.Tensor | None = None, **options: Any) -> RigidBody:
        """The `RigidBody` for a scene.

        Args:
            handles: Positions of the handles [m], shape (k, 3); None for rest.
            **options: Further fields of `RigidBody`, such as `position`.
        """
        handles = self.rest if handles is None else handles.detach()
        vertices = self.deformed(handles)
        if self.contacts is not None:
            cloud = Cloud(self.contacts.positions(vertices).numpy(), self.contacts.areas(vertices).numpy())
            options = {"points": cloud} | options
        return RigidBody(self.name, TriangleMesh(vertices.numpy(), self.faces.numpy()), self.density, **options)


@checked
def designed_parameters(
    sim: Simulation[Any],
    bodies: Mapping[CagedBody, torch.Tensor],
    joints: Mapping[str, tuple[CagedBody, Sequence[float]]] | None = None,
) -> dict[str, torch.Tensor]:
    """Parameters of articulated bodies whose handles have moved, for `Simulation.step` and `rollout`.

    The deformed meshes determine masses, centres of mass, moments of inertia, contact points and their areas, and the
    distance samples of solids in contacts. Limit stiffness and damping that joints do not specify follow from the new
    inertia; the frame of a floating body whose joint has no `position` follows the new centre of mass. All results are
    differentiable with respect to the handles; all other parameters keep their values.

    Args:
        sim: A simulation, with the solver `Articulated`, of a scene that has the bodies.
        bodies: Positions of the handles of each designed body [m], shape (k, 3).
        joints: The joints whose origins move with a designed body, by the name of the joint. Each value is the designed
            body, which must be the parent of the joint, and the origin of the joint in the frame of that body with the
            handles at rest [m], shape (3,).

    Returns:
        Parameters by name, shape (worlds, ...).

    Raises:
        KeyError: There is no such body or joint in the simulation.
        ValueError: Handles turn a mesh inside out or move it out of the grid of its distance samples, a solid of a
            designed body is not a mesh, or a given body is not the parent of its joint.
        SceneError: The distance samples of a solid miss most of its surface.
    """
    shapes = {body.name: body.shape(handles) for body, handles in bodies.items()}
    return model_parameters(sim, shapes, _origins(sim, bodies, joints or {}))


def _origins(
    sim: Simulation[Any],
    bodies: Mapping[CagedBody, torch.Tensor],
    joints: Mapping[str, tuple[CagedBody, Sequence[float]]],
) -> dict[str, torch.Tensor]:
    """Origins of joints in the frames of their parents [m], each of shape (3,)."""
    parents = {joint.name: joint.parent for joint in sim.model.robot.joints}
    for name, (body, _) in joints.items():
        if name not in parents:
            raise KeyError(f"designed_parameters: there is no joint {name!r}; the scene has {', '.join(parents)}")
        if parents[name] != body.name:
            raise ValueError(
                f"designed_parameters: the parent of joint {name!r} is {parents[name]!r}, not {body.name!r}"
            )
    return {name: body.carried([list(origin)], bodies[body])[0] for name, (body, origin) in joints.items()}
