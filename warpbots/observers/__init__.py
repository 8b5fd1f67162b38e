"""Observers: what a controller observes of a state.

The `bind` method of an observer receives the simulation; a plain function of the state works, too.
"""

from warpbots.observers.clusters import Centroid, Clusters
from warpbots.observers.memory import Delayed, Noisy
from warpbots.observers.observer import BoundObserver, Observation, Observer, Remembers, forget
from warpbots.observers.rigid import ContactForces, EndEffector, Joints, JointTorques, Poses, Tactile
from warpbots.observers.soft import Accelerometer, Gyroscope, ObstacleForces, Pressure, Strain

__all__ = [
    "Accelerometer",
    "BoundObserver",
    "Centroid",
    "Clusters",
    "ContactForces",
    "Delayed",
    "EndEffector",
    "Gyroscope",
    "JointTorques",
    "Joints",
    "Noisy",
    "Observation",
    "Observer",
    "ObstacleForces",
    "Poses",
    "Pressure",
    "Remembers",
    "Strain",
    "Tactile",
    "forget",
]
