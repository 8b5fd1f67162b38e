"""The shapes of rigid bodies as solids on the device."""

import numpy as np
import warp as wp

from warpbots.contact.solid import SPHERE, Solids
from warpbots.contact.solid_forms import SolidForm, closed_form, linear_samples, solid_arrays
from warpbots.scene import RigidBody
from warpbots.solvers.articulated.spatial import vec3
from warpbots.solvers.device_arrays import device_array

__all__ = ["SolidBoxes", "body_boxes", "body_solids"]

_SMALLEST = 0.5
"""Largest radius of rounded edges and rims [smallest half edge of a box, or radius or half length of a cylinder]."""

_SAMPLED = 2.0
"""Distance up to which samples surround a shape without a closed form [cells of the matter]."""

_ROUNDED_UP = 1.0001
"""Factor of the edges of a box around a solid, so that rounding leaves no part of the solid outside."""


_HALF_DEPTH = 0.5
"""Half the extent of the box of a 2D shape across its plane, in which all points are [m]."""


@wp.struct
class SolidBoxes:
    """A box around the solid of each body, in the frame of the body; all of shape (n_bodies,).

    middle: Middle of the box [m].
    half: Half edges of the box [m]; infinite for a half-space, minus infinity for a body without shape.
    """

    middle: wp.array[vec3]
    half: wp.array[vec3]


def body_boxes(bodies: tuple[RigidBody, ...], dx: float, device: wp.Device) -> SolidBoxes:
    """Boxes around the solids from `body_solids`: outside, no distance is smaller than the distance from the box.

    Args:
        bodies: The bodies.
        dx: Size of a cell of the matter [m].
        device: Device of the arrays.
    """
    middle, half = np.zeros((len(bodies), 3)), np.full((len(bodies), 3), -np.inf)
    for k, body in enumerate(bodies):
        if body.shape is not None:
            (lower, upper), margin = body.shape.bounds, 0.0 if closed_form(body.shape) else _SAMPLED * dx
            dim = len(lower)
            half[k] = _HALF_DEPTH  # across the plane of a 2D shape
            half[k, :dim] = _ROUNDED_UP * ((upper - lower) / 2.0 + margin)
            middle[k, :dim] = (lower + upper) / 2.0 if np.isfinite(half[k]).all() else 0.0
    boxes = SolidBoxes()
    boxes.middle, boxes.half = (device_array(a, device, vec3) for a in (middle, half))
    return boxes


def body_solids(bodies: tuple[RigidBody, ...], dx: float, rounding: float, device: wp.Device) -> Solids:
    """Solids of rigid bodies, in the order of `bodies`; a body without shape has a reach of 0.

    Args:
        bodies: The bodies.
        dx: Size of a cell of the matter [m]; shapes without a closed form are sampled at half of it.
        rounding: Radius of rounded edges of boxes and rims of cylinders [m].
        device: Device of the arrays.

    Raises:
        SceneError: Samples do not fit into memory.
    """
    forms = [_form(body, dx) for body in bodies]
    solids = solid_arrays(forms, range(len(forms)), _SMALLEST, device)
    solids.rounding.assign(np.minimum(rounding, solids.rounding.numpy()))
    sampled = [np.linalg.norm(np.array(f.samples.shape) * f.size) if f.samples.size else 0.0 for f in forms]
    solids.reach = device_array(np.where(sampled, sampled, solids.reach.numpy()), device, wp.float64)
    return solids


def _form(body: RigidBody, dx: float) -> SolidForm:
    if body.shape is None:
        return SolidForm(SPHERE, np.eye(3), np.zeros(3), np.zeros(3))
    (low, high), margin = body.shape.bounds, _SAMPLED * dx
    return closed_form(body.shape) or linear_samples(body.shape, low - margin, high + margin, 0.5 * dx, body.name)
