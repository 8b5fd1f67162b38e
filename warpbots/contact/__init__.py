"""Distances to shapes, their surfaces and volumes, and the laws of contact."""

from warpbots.contact.conditions import CODES, coefficients, constrain, extra_rest_friction
from warpbots.contact.distance import normal, signed_distance
from warpbots.contact.points_within import points_within
from warpbots.contact.surface_nets import sampled_surface, surface_nets
from warpbots.contact.thickness import least_thickness, refuse_thin, thickness
from warpbots.contact.volume import volume
from warpbots.contact.width import cells_across, width, width_within

__all__ = [
    "CODES",
    "cells_across",
    "coefficients",
    "constrain",
    "extra_rest_friction",
    "least_thickness",
    "normal",
    "points_within",
    "refuse_thin",
    "sampled_surface",
    "signed_distance",
    "surface_nets",
    "thickness",
    "volume",
    "width",
    "width_within",
]
