"""Finds rotated and mirrored images of robots, which count as the same robot."""

import functools
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from warpbots.design.component import Component, Port
from warpbots.design.grammar.term import Term

__all__ = ["Symmetry", "canonical", "symmetries"]

_SAME = 1e-9
"""Largest difference of lengths that count as equal [m], and of entries of unit vectors [1]."""

Symmetry: TypeAlias = tuple[Mapping[str, str], bool]
"""The image of each port, and whether the component is mirrored."""

_Canonical: TypeAlias = tuple[str, tuple]
"""A symbol, and port and canonical form of each child; of all images of a term, the first in order."""


def canonical(term: Term, components: Mapping[str, Component]) -> _Canonical:
    """A canonical form of a robot, which is the same for all its rotated and mirrored images, and for no other robot.

    A robot is rotated or mirrored as a whole, by a symmetry of its root. If it is mirrored, every component is mirrored
    in the plane y = 0 of its port "in"; this reflection must be a symmetry of the component.

    Args:
        term: The tree of the components of the robot, by name.
        components: Components by name.
    """
    forms = (_form(term, components, mirrored, root=True) for mirrored in (False, True))
    return min(form for form in forms if form is not None)


def _form(term: Term, components: Mapping[str, Component], mirrored: bool, root: bool) -> _Canonical | None:
    """The smallest form of all images that are mirrored (or all that are not); None if there is no such image."""
    found = []
    children = {port: _form(child, components, mirrored, root=False) for port, child in term.children}
    if all(child is not None for child in children.values()):
        for images, flipped in symmetries(components[term.symbol], root):
            if flipped == mirrored:
                found.append((term.symbol, tuple(sorted((images[port], c) for port, c in children.items()))))
    return min(found, default=None)


@functools.lru_cache(maxsize=256)
def symmetries(component: Component, root: bool) -> tuple[Symmetry, ...]:
    """Rotations and reflections that map a component onto itself, and its ports onto ports.

    Meshes, handles and ports at rest, and the hinge with its angles, must coincide with their images. Reflections must
    reverse the y axes of ports, but not their z axes.

    Args:
        component: The component.
        root: Whether the component is the root; otherwise its port "in" must be mapped onto itself.
    """
    ports = {name: port for name, port in component.ports.items() if name != "in" or not root}
    if not ports:
        return (({}, False),)
    first = next(iter(ports)) if root else "in"
    targets = list(ports) if root else ["in"]
    found = []
    for target in targets:
        for mirrored in (False, True):
            images = _images(component, ports, first, target, mirrored)
            if images is not None:
                found.append((images, mirrored))
    return tuple(found)


def _images(
    component: Component, ports: Mapping[str, Port], first: str, target: str, mirrored: bool
) -> dict[str, str] | None:
    """Images of ports under the map x' = Q x + t from port `first` to port `target`.

    None if the map is not a symmetry.
    """
    handles = component.cage.handles
    flip = np.diag([1.0, -1.0 if mirrored else 1.0, 1.0])
    Q = ports[target].rotation @ flip @ ports[first].rotation.T
    t = handles[ports[target].handles[0]] - Q @ handles[ports[first].handles[0]]
    clouds = [handles, *(part.vertices for part in component.parts)]
    if not all(_same_points(cloud @ Q.T + t, cloud) for cloud in clouds) or not _same_hinge(component, Q, t):
        return None
    images = {}
    for name, port in ports.items():
        here = handles[port.handles[0]] @ Q.T + t
        there = [
            other
            for other, at in ports.items()
            if np.allclose(handles[at.handles[0]], here, rtol=0.0, atol=_SAME)
            and np.allclose(at.rotation, Q @ port.rotation @ flip, rtol=0.0, atol=_SAME)
            and np.allclose(component.section(other), component.section(name), rtol=0.0, atol=_SAME)
        ]
        if not there:
            return None
        images[name] = there[0]
    return images


def _same_points(a: np.ndarray, b: np.ndarray) -> bool:
    from scipy.spatial import KDTree

    return bool(KDTree(b).query(a)[0].max() < _SAME)


def _same_hinge(component: Component, Q: np.ndarray, t: np.ndarray) -> bool:
    """Whether x' = Q x + t maps the axis of the hinge, and the range of the angles of the hinge, onto themselves."""
    hinge = component.hinge
    if hinge is None:
        return True
    axis, position = np.asarray(hinge.axis, dtype=float), np.asarray(hinge.position, dtype=float)
    sense = round(float(axis @ Q @ axis / (axis @ axis)), 9)
    offset = np.linalg.norm(np.cross(Q @ position + t - position, axis))
    turned = sense * np.linalg.det(Q)  # a reflection reverses rotations
    return abs(sense) == 1.0 and offset < _SAME and (turned > 0.0 or abs(hinge.lower + hinge.upper) < _SAME)
