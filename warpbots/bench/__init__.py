"""A live bench: a simulation that runs while one watches it, moves its sliders and pulls at its bodies."""

from warpbots.bench.bench import Bench
from warpbots.bench.ray import Ray
from warpbots.bench.recording import Recording

__all__ = ["Bench", "Ray", "Recording"]
