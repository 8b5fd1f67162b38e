"""Distances to shapes and the laws of contact."""

from warpbots.contact.conditions import CODES, coefficients, constrain
from warpbots.contact.distance import normal, signed_distance

__all__ = ["CODES", "coefficients", "constrain", "normal", "signed_distance"]
