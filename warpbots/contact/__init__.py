"""Distances to shapes, their surfaces, and the laws of contact."""

from warpbots.contact.conditions import CODES, coefficients, constrain, extra_rest_friction
from warpbots.contact.distance import normal, signed_distance
from warpbots.contact.field import obstacle_arrays, obstacle_field, penetration
from warpbots.contact.nets import sampled_surface, surface_nets

__all__ = [
    "CODES",
    "coefficients",
    "constrain",
    "extra_rest_friction",
    "normal",
    "obstacle_arrays",
    "obstacle_field",
    "penetration",
    "sampled_surface",
    "signed_distance",
    "surface_nets",
]
