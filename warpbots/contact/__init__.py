"""Distances to shapes and the laws of contact."""

from warpbots.contact.conditions import CODES, coefficients, constrain, extra_rest_friction
from warpbots.contact.distance import normal, signed_distance
from warpbots.contact.field import obstacle_arrays, obstacle_field, penetration

__all__ = [
    "CODES",
    "coefficients",
    "constrain",
    "extra_rest_friction",
    "normal",
    "obstacle_arrays",
    "obstacle_field",
    "penetration",
    "signed_distance",
]
