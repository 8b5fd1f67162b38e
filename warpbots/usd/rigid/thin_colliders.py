"""Replaces colliders that are too thin for contact by a box, and refuses colliders that are too small."""

import warnings

import numpy as np
from pxr import Usd

from warpbots.scene import Box, Contact, Posed, RigidBody, Scene, SceneError, Shape, Sphere, TriangleMesh
from warpbots.solvers.articulated import Articulated
from warpbots.usd.stage.inventory import Note

__all__ = ["tangible"]

_SLENDER = 0.1
"""Ratio of thickness to length above which a mesh is never lost between the samples of its distance field [1]."""

_SMALL = 1e-2
"""Length above which a solid is never too small for contact points [m]."""


def tangible(prim: Usd.Prim, shape: Shape, note: Note) -> Shape:
    """`shape`, or the box around a mesh that `Articulated` would refuse as too thin.

    Args:
        prim: The collider.
        shape: The solid of the collider.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        SceneError: The solid is too small for contact; the message does not name the prim.
    """
    edges = np.ptp(shape.bounds, axis=0)
    if isinstance(shape, TriangleMesh):
        import trimesh

        turned, edges = trimesh.bounds.oriented_bounds(shape.vertices)
    if edges.min() > _SLENDER * edges.max() and edges.max() > _SMALL:
        return shape
    if _accepts_contact(shape, edges.max()):
        return shape
    if isinstance(shape, TriangleMesh):
        pose = np.linalg.inv(turned)
        box = Posed(Box(tuple(-edges / 2.0), tuple(edges / 2.0)), tuple(pose[:3, 3]), pose[:3, :3])
        if _accepts_contact(box, edges.max()):
            note(prim, f"it is {edges.min():.2g} m thick, too thin for contact; the box around it is used instead")
            return box
    raise SceneError(f"its size of {edges.max():.2g} m and thickness of {edges.min():.2g} m are too small for contact")


def _accepts_contact(shape: Shape, size: float) -> bool:
    """Whether `Articulated` accepts contact between a solid of the given size [m] and a ball of the same size."""
    solid = RigidBody("solid", shape, points=8)
    ball = RigidBody("ball", Sphere((0.0, 0.0, 0.0), max(size, _SMALL)), points=8)
    laws = [Contact("solid", "ball", 1e6), Contact("ball", "solid", 1e6)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Articulated().build(Scene([solid, ball], contacts=laws), 1, "cpu")
    except (SceneError, ArithmeticError):
        return False
    return True
