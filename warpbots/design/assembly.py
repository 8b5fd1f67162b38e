"""Robots that are assembled from components; a few scale factors determine their shape."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from warpbots.design.link import Link, links_of, places_of
from warpbots.design.mass_properties import MassProperties, closed_mass_properties
from warpbots.design.model_parameters import BodyShape, model_parameters
from warpbots.design.part import Part
from warpbots.design.shape_parameters import shape_parameters
from warpbots.design.tree import Node, instances_of
from warpbots.scene import Cloud, Inertia, Joint, RigidBody
from warpbots.scene.field_types import checked
from warpbots.scene.shapes import TriangleMesh, Union
from warpbots.simulation import Simulation

__all__ = ["Assembly", "AssemblyShape"]

_UPRIGHT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class AssemblyShape:
    """The shape of an assembly for given scale factors, differentiable with respect to these factors.

    Links are in the order of `Assembly.links`. Positions and mass properties are in the frame of the link to which they
    belong, unless another frame is stated.

    Attributes:
        parts: For each link, the vertices of the meshes of its parts [m], one array of shape (n, 3) for each part.
        origins: For each link, the origin of its frame in the frame of its parent link [m], shape (3,); zero for the
            root.
        contact_points: Contact points of each link [m], each of shape (n, 3).
        contact_areas: Areas that the contact points represent [m^2], each of shape (n,).
        masses: Mass, centre of mass and moments of inertia of each link.
        handles: For each instance, the positions of the handles of its cage, in the frame of its component [m], shape
            (k, 3).
        component_origins: For each part of each instance, the origin of the frame of its component in the frame of the
            link of the part [m], shape (3,).
    """

    parts: tuple[tuple[torch.Tensor, ...], ...]
    origins: tuple[torch.Tensor, ...]
    contact_points: tuple[torch.Tensor, ...]
    contact_areas: tuple[torch.Tensor, ...]
    masses: tuple[MassProperties, ...]
    handles: tuple[torch.Tensor, ...]
    component_origins: tuple[tuple[torch.Tensor, ...], ...]


class Assembly:
    """A tree of components as articulated bodies.

    Components that are joined without a movable hinge form one body, a link. The first link has the name of the root
    component, with "-base" appended if that component has a hinge. Every other link is carried by the hinge of a
    component: the link and its joint have the name of this component. The frame of the first link is the frame of the
    root component. The frame of every other link has its origin on the axis of the hinge that carries the link, and the
    axes of the component with this hinge.

    Attributes:
        instances: The instances of components, parents before children.
        links: The links, parents before children.
        density: Density [kg/m^3].
    """

    @checked
    def __init__(self, root: Node, constant: Sequence[str] = (), density: float = 1000.0):
        """Assemble the links, and determine the free parameters.

        Args:
            root: The tree of components.
            constant: Names, or patterns of names such as ``"palm.*"``, of scale factors that remain 1 and are not free
                parameters.
            density: Density [kg/m^3].

        Raises:
            ValueError: Ports do not fit, two components have the same name, a pattern matches no parameter, or the
                density is not positive.
            KeyError: A child is at a port that its parent component does not have.
        """
        if not density > 0.0:
            raise ValueError(f"Assembly: density must be positive [kg/m^3], got {density:g}")
        self.instances, self.density = instances_of(root), density
        self.links, self._places = links_of(self.instances)
        self._parameters = shape_parameters(self.instances, constant)
        self._layouts = [torch.as_tensor(instance.component.layout) for instance in self.instances]
        self._faces = [self._faces_of(link) for link in self.links]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scale factors."""
        return self._parameters.names

    @property
    def rest(self) -> torch.Tensor:
        """Scale factors of the nominal shape, all 1, shape (n,)."""
        return torch.ones(len(self.names), dtype=torch.float64)

    @checked
    def shape(self, factors: torch.Tensor) -> AssemblyShape:
        """The shape for given scale factors.

        Args:
            factors: Scale factors in the order of `names` [1], shape (n,).

        Raises:
            ValueError: A factor is not positive, the number of factors is wrong, or the factors turn a component inside
                out.
        """
        sizes = self._parameters.sizes(factors)
        handles = [layout @ own for layout, own in zip(self._layouts, sizes, strict=True)]
        component_origins, hinges = places_of(self.instances, self._places, handles)

        def placed(n: int, p: int) -> torch.Tensor:
            local = self.instances[n].component.weights[p] @ handles[n]
            return local @ self._places[n][p].rotation.T + component_origins[n][p]

        parts = [tuple(placed(n, p) for n, p in link.parts) for link in self.links]
        touched = [self._contacts(k, own) for k, own in enumerate(parts)]
        return AssemblyShape(
            tuple(parts),
            tuple(hinges.get(link.hinge, factors.new_zeros(3, dtype=torch.float64)) for link in self.links),
            tuple(points for points, _ in touched),
            tuple(areas for _, areas in touched),
            tuple(self._mass(k, own) for k, own in enumerate(parts)),
            tuple(handles),
            tuple(map(tuple, component_origins)),
        )

    def bodies(
        self,
        factors: torch.Tensor | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[Sequence[float]] | np.ndarray = _UPRIGHT,
        **options: Any,
    ) -> list[RigidBody]:
        """The links of the assembly as rigid bodies.

        Args:
            factors: Scale factors [1], shape (n,); None for the nominal shape.
            position: Origin of the frame of the first link in the world, with all coordinates at zero [m], shape (3,).
            rotation: Rotation matrix of this frame in the world, row by row, shape (3, 3); the columns of the matrix
                are the axes of the frame.
            **options: Further fields of every `RigidBody`, such as `surface` or `color`; ``points=0`` gives links
                without contact points.
        """
        shape = self.shape(self.rest if factors is None else factors.detach())
        found = []
        for k, (at, R) in enumerate(self._poses(shape, position, rotation)):
            link, mass = self.links[k], shape.masses[k]
            meshes = [
                TriangleMesh(vertices.numpy(), self._part(n, p).faces)
                for (n, p), vertices in zip(link.parts, shape.parts[k], strict=True)
            ]
            solid = meshes[0] if len(meshes) == 1 else Union(tuple(meshes))
            inertia = Inertia(mass.mass.item(), mass.center.tolist(), mass.inertia.numpy())
            own: dict[str, Any] = {"position": at, "rotation": R}
            if len(shape.contact_points[k]):
                own["points"] = Cloud(shape.contact_points[k].numpy(), shape.contact_areas[k].numpy())
            found.append(RigidBody(link.name, solid, self.density, inertia, **own | options))
        return found

    def joints(
        self,
        factors: torch.Tensor | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[Sequence[float]] | np.ndarray = _UPRIGHT,
        limits: bool = True,
        **options: Any,
    ) -> list[Joint]:
        """The hinges between the links of the assembly.

        Args:
            factors: Scale factors [1], shape (n,); None for the nominal shape.
            position: Origin of the frame of the first link, as in `bodies` [m], shape (3,).
            rotation: Rotation matrix of this frame, as in `bodies`, shape (3, 3).
            limits: Whether the joints get limits: the angles at which the two parts of the hinge collide.
            **options: Further fields of every `Joint`, such as `damping`.
        """
        shape = self.shape(self.rest if factors is None else factors.detach())
        found = []
        for k, (at, R) in enumerate(self._poses(shape, position, rotation)):
            link = self.links[k]
            if link.parent >= 0:
                hinge = self.instances[link.hinge].component.hinge
                own = {"axis": hinge.axis} | ({"lower": hinge.lower, "upper": hinge.upper} if limits else {})
                parent = self.links[link.parent].name
                found.append(Joint(link.name, "revolute", parent, link.name, position=at, rotation=R, **own | options))
        return found

    def model_parameters(self, sim: Simulation[Any], shape: AssemblyShape) -> dict[str, torch.Tensor]:
        """Parameters that give the model of `sim` a new shape of the assembly, for `Simulation.step` and `rollout`.

        The parameters are masses, contact points and their areas, origins of joints, and the stiffness and damping of
        those joint limits for which the scene does not specify them. All of them are differentiable with respect to the
        scale factors.

        Args:
            sim: A simulation with the solver `Articulated` of a scene that has the results of `bodies` and `joints`.
            shape: A result of the method `shape`.

        Raises:
            KeyError: The scene lacks a body or a joint.
        """
        meshes = [self._meshes(link, parts) for link, parts in zip(self.links, shape.parts, strict=True)]
        columns = zip(shape.masses, shape.contact_points, shape.contact_areas, meshes, strict=True)
        bodies = {link.name: BodyShape(*own) for link, own in zip(self.links, columns, strict=True)}
        moved = zip(self.links, shape.origins, strict=True)
        return model_parameters(sim, bodies, {link.name: origin for link, origin in moved if link.parent >= 0})

    def carried(self, name: str, points: Sequence[Sequence[float]], shape: AssemblyShape) -> tuple[str, torch.Tensor]:
        """Positions of points of a component that move with the handles of its cage, such as the end of a finger.

        Args:
            name: Name of the instance of the component. If the component has a hinge, the points belong to the part
                behind the hinge.
            points: Positions of the points in the nominal shape, in the frame of the component, inside the cage or on
                it [m], shape (n, 3).
            shape: A result of the method `shape`.

        Returns:
            The name of the link to which the points belong, and the positions of the points in the frame of this link
            [m], shape (n, 3).

        Raises:
            KeyError: There is no such instance.
            ValueError: A point is outside of the cage.
        """
        names = [i.name for i in self.instances]
        if name not in names:
            raise KeyError(f"Assembly: there is no component {name!r}; there are {', '.join(names)}")
        n = names.index(name)
        place = self._places[n][-1]
        weights = self.instances[n].component.cage.weights(torch.as_tensor(points, dtype=torch.float64))
        found = weights @ shape.handles[n] @ place.rotation.T + shape.component_origins[n][-1]
        return self.links[place.link].name, found

    def _part(self, n: int, p: int) -> Part:
        return self.instances[n].component.parts[p]

    def _faces_of(self, link: Link) -> torch.Tensor:
        """Faces of all meshes of a link, as indices into the joined vertices of these meshes, shape (m, 3), int."""
        parts = [self._part(n, p) for n, p in link.parts]
        offsets = np.cumsum([0] + [len(part.vertices) for part in parts[:-1]])
        return torch.as_tensor(np.concatenate([part.faces + k for part, k in zip(parts, offsets, strict=True)]))

    def _meshes(self, link: Link, parts: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Vertices and faces of each mesh of a link."""
        faces = [torch.as_tensor(self._part(n, p).faces) for n, p in link.parts]
        return list(zip(parts, faces, strict=True))

    def _mass(self, k: int, parts: Sequence[torch.Tensor]) -> MassProperties:
        """Mass properties of link `k`."""
        vertices = torch.cat(list(parts))
        self._refuse_inside_out(k, vertices.detach())
        return closed_mass_properties(vertices, self._faces[k], self.density)

    def _refuse_inside_out(self, k: int, vertices: torch.Tensor) -> None:
        a, b, c = vertices[self._faces[k]].unbind(dim=1)
        volumes = (a * torch.linalg.cross(b, c)).sum(dim=1) / 6.0  # of tetrahedra at the origin
        counts = [len(self._part(n, p).faces) for n, p in self.links[k].parts]
        for (n, _), own in zip(self.links[k].parts, volumes.split(counts), strict=True):
            if not own.sum() > 0.0:
                raise ValueError(
                    f"Assembly: the factors turn component {self.instances[n].name!r} inside out, whose mesh encloses "
                    f"{own.sum():.3g} m^3: change the design less"
                )

    def _contacts(self, k: int, parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Contact points of link `k` [m], shape (n, 3), and the areas that they represent [m^2], shape (n,)."""
        own = [(self._part(n, p).contacts, v) for (n, p), v in zip(self.links[k].parts, parts, strict=True)]
        points = [contacts.positions(v) for contacts, v in own if contacts is not None]
        areas = [contacts.areas(v) for contacts, v in own if contacts is not None]
        none = parts[0].new_zeros(0)
        return torch.cat([none.reshape(0, 3), *points]), torch.cat([none, *areas])

    def _poses(
        self, shape: AssemblyShape, position: Sequence[float], rotation: Sequence[Sequence[float]] | np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Origin and axes of the frame of each link in the world, with all joint coordinates at zero."""
        poses: list[tuple[np.ndarray, np.ndarray]] = []
        for link, origin in zip(self.links, shape.origins, strict=True):
            at, R = poses[link.parent] if poses else (np.asarray(position, float), np.asarray(rotation, float))
            poses.append((at + R @ origin.numpy(), R @ link.rotation.numpy()))
        return poses
