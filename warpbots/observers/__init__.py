"""What a controller sees of a state.

An observer with a `bind` method is told the simulation; a plain function of the state works too.
"""

from warpbots.observers.clusters import Centroid, Clusters
from warpbots.observers.observer import Observation, Observer
from warpbots.observers.rigid import ContactForces, EndEffector, Joints, JointTorques, Poses, Tactile

__all__ = [
    "Centroid",
    "Clusters",
    "ContactForces",
    "EndEffector",
    "JointTorques",
    "Joints",
    "Observation",
    "Observer",
    "Poses",
    "Tactile",
]
