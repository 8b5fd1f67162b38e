"""Observers, which compute the observations of a controller from a state.

The method `bind` of an observer takes a simulation and returns a function of the state. A controller also accepts a
plain function of the state in place of an observer.
"""

from typing import TYPE_CHECKING

from warpbots.observers.autoencoder import Autoencoder
from warpbots.observers.clusters import Centroid, Clusters
from warpbots.observers.grid import Grid
from warpbots.observers.memory import Delayed, Noisy
from warpbots.observers.observer import BoundObserver, Observation, Observer, Remembers, detach, forget
from warpbots.observers.rigid import ContactForces, EndEffector, Joints, JointTorques, Poses, Tactile
from warpbots.observers.soft import Accelerometer, Gyroscope, MeanPressure, ObstacleForces, Strain
from warpbots.renamed import refuse_former

__all__ = [
    "Accelerometer",
    "Autoencoder",
    "BoundObserver",
    "Centroid",
    "Clusters",
    "ContactForces",
    "Delayed",
    "EndEffector",
    "Grid",
    "Gyroscope",
    "JointTorques",
    "Joints",
    "Noisy",
    "Observation",
    "Observer",
    "ObstacleForces",
    "Poses",
    "MeanPressure",
    "Remembers",
    "Strain",
    "Tactile",
    "detach",
    "forget",
]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
