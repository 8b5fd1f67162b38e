"""What pictures and files show of matter: stress, strain, activation and parameters as colours, routes of cables."""

from warpbots.quantities.cable_routes import cable_routes
from warpbots.quantities.color_map import ColorMap
from warpbots.quantities.point_values import ACTIVATION, PointValues, point_values

__all__ = ["ACTIVATION", "ColorMap", "PointValues", "cable_routes", "point_values"]
