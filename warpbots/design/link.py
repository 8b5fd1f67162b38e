"""Links of a robot: groups of parts that move as one body, and the placement of parts in links.

A component has one part or, with a hinge, two parts. An instance is one occurrence of a component in a robot. The parts
of a link belong to one or several instances.
"""

import dataclasses
from collections.abc import Sequence

import torch

from warpbots.design.tree import Instance

__all__ = ["Link", "Placement", "links_of", "places_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class Placement:
    """The link to which a part of an instance belongs, and the orientation of the component in this link.

    Link and orientation do not depend on the sizes of the component.

    Attributes:
        link: Index of the link to which the part belongs.
        rotation: Axes of the component in the frame of the link, as columns, shape (3, 3).
    """

    link: int
    rotation: torch.Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """Parts that move as one body.

    Attributes:
        name: Name of the body, and of the joint that carries the body.
        parent: Index of the link that carries this link, -1 for the root.
        hinge: Index of the instance whose hinge carries this link, -1 for the root.
        parts: The parts of the link, each as the index of an instance and the index of a part of this instance.
        rotation: Axes of the frame of the link in the frame of its parent link with the hinge at zero, as columns,
            shape (3, 3).
    """

    name: str
    parent: int
    hinge: int
    parts: tuple[tuple[int, int], ...]
    rotation: torch.Tensor


def links_of(instances: Sequence[Instance]) -> tuple[tuple[Link, ...], tuple[tuple[Placement, ...], ...]]:
    """The links, parents before children; and for each instance, the placement of each of its parts."""
    identity = torch.eye(3, dtype=torch.float64)
    first, hinge = instances[0].name, instances[0].component.hinge
    turns = hinge is not None and not hinge.locked  # parts behind a hinge have its name
    links = [Link(f"{first}-base" if turns else first, -1, -1, (), identity)]
    places: list[tuple[Placement, ...]] = []
    for n, instance in enumerate(instances):
        if instance.port is None:
            near = Placement(0, identity)
        else:
            behind = places[instance.parent][-1]
            near = Placement(behind.link, behind.rotation @ torch.as_tensor(instance.port.rotation))
        hinge, far = instance.component.hinge, near
        if hinge is not None and not hinge.locked:
            links.append(Link(instance.name, near.link, n, (), near.rotation))
            far = Placement(len(links) - 1, identity)
        places.append((near, far) if hinge is not None else (near,))
        for part, place in enumerate(places[-1]):
            link = links[place.link]
            links[place.link] = dataclasses.replace(link, parts=(*link.parts, (n, part)))
    return tuple(links), tuple(places)


def places_of(
    instances: Sequence[Instance], places: Sequence[Sequence[Placement]], handles: Sequence[torch.Tensor]
) -> tuple[list[list[torch.Tensor]], dict[int, torch.Tensor]]:
    """Positions of components in links, and of links in their parent links, for given handles.

    Args:
        instances: The instances of components, parents before children.
        places: The placements from `links_of`.
        handles: Positions of the handles of each component, in the frame of the component [m], each of shape (k, 3).

    Returns:
        First, for each part of each instance, the origin of the frame of the component in the frame of the link [m],
        shape (3,). Second, for each link, the origin of its frame in the frame of its parent link [m], shape (3,), by
        the index of the instance whose hinge carries the link.
    """
    origins: list[list[torch.Tensor]] = []
    hinges: dict[int, torch.Tensor] = {}
    for n, instance in enumerate(instances):
        near = handles[n].new_zeros(3)
        if instance.port is not None:
            behind, rotation = origins[instance.parent][-1], places[instance.parent][-1].rotation
            near = behind + rotation @ handles[instance.parent][instance.port.handles[0]]
        own, hinge = [near], instance.component.hinge
        if hinge is not None:
            axis = instance.component.hinge_weights @ handles[n]
            if hinge.locked:
                own.append(near)
            else:
                own.append(-axis)
                hinges[n] = near + places[n][0].rotation @ axis
        origins.append(own)
    return origins, hinges
