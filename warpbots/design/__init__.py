"""Robots from a few numbers: cages that deform meshes, and what bodies made of these weigh and touch."""

from warpbots.design.cage import Cage, CageMap, box_cage, grid_cage
from warpbots.design.caged_body import CagedBody, designed_parameters
from warpbots.design.mass_properties import MassProperties, mass_properties
from warpbots.design.mean_value import mean_value_weights
from warpbots.design.surface_points import SurfacePoints, surface_points

__all__ = [
    "Cage",
    "CageMap",
    "CagedBody",
    "MassProperties",
    "SurfacePoints",
    "box_cage",
    "designed_parameters",
    "grid_cage",
    "mass_properties",
    "mean_value_weights",
    "surface_points",
]
