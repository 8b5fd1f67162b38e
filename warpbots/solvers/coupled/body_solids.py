"""The shapes of rigid bodies as solids on the device."""

import numpy as np
import warp as wp

from warpbots.contact.solid import SPHERE, Solids
from warpbots.contact.solid_forms import SolidForm, closed_form, linear_samples, solid_arrays
from warpbots.scene import RigidBody
from warpbots.solvers.device_arrays import device_array

__all__ = ["body_solids"]


_SMALLEST = 0.5
"""Largest radius of rounded edges and rims [smallest half edge of a box, or radius or half length of a cylinder]."""


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
    low, high = body.shape.bounds
    return closed_form(body.shape) or linear_samples(body.shape, low - 2.0 * dx, high + 2.0 * dx, 0.5 * dx, body.name)
