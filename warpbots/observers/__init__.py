"""What a controller sees of a state.

An observer with a `bind` method is told the simulation; a plain function of the state works too.
"""

from warpbots.observers.clusters import Centroid, Clusters

__all__ = ["Centroid", "Clusters"]
