"""Observers: what a controller observes of a state.

The `bind` method of an observer receives the simulation; a plain function of the state works, too.
"""

from warpbots.observers.clusters import Centroid, Clusters
from warpbots.observers.observer import BoundObserver, Observation, Observer
from warpbots.observers.rigid import ContactForces, EndEffector, Joints, JointTorques, Poses, Tactile

__all__ = [
    "BoundObserver",
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
