"""Quantities of matter that pictures and files show as colours: stress, strain, activation, parameters."""

from warpbots.quantities.color_map import ColorMap
from warpbots.quantities.point_values import ACTIVATION, PointValues, point_values

__all__ = ["ACTIVATION", "ColorMap", "PointValues", "point_values"]
