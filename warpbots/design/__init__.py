"""Parametric robots: components in cages, assembled by hand or by a grammar."""

from warpbots.design import export
from warpbots.design.assembly import Assembly, AssemblyShape
from warpbots.design.box_component import box_component
from warpbots.design.cage import Cage, CageMap, box_cage, grid_cage
from warpbots.design.caged_body import CagedBody, designed_parameters
from warpbots.design.component import Component, Hinge, Port
from warpbots.design.grammar import (
    HAND_RULES,
    Design,
    Grammar,
    Term,
    Topology,
    hand_components,
    hand_grammar,
    mounted,
)
from warpbots.design.hand_parts import joint, knuckle, palm, phalanx, tip
from warpbots.design.mass_properties import MassProperties, mass_properties
from warpbots.design.mean_value import mean_value_weights
from warpbots.design.mesh_distance import mesh_distance
from warpbots.design.part import Part
from warpbots.design.section import Section
from warpbots.design.star_palm import star_palm
from warpbots.design.surface_points import SurfacePoints, surface_points
from warpbots.design.tree import Node, chain

__all__ = [
    "HAND_RULES",
    "Assembly",
    "AssemblyShape",
    "Cage",
    "CageMap",
    "CagedBody",
    "Component",
    "Design",
    "Grammar",
    "Hinge",
    "MassProperties",
    "Node",
    "Part",
    "Port",
    "Section",
    "SurfacePoints",
    "Term",
    "Topology",
    "box_cage",
    "box_component",
    "chain",
    "designed_parameters",
    "export",
    "hand_components",
    "hand_grammar",
    "joint",
    "knuckle",
    "grid_cage",
    "mass_properties",
    "mean_value_weights",
    "mounted",
    "palm",
    "phalanx",
    "star_palm",
    "mesh_distance",
    "surface_points",
    "tip",
]
