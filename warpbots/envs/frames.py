"""Pictures of the worlds of an environment, from a camera that follows the bodies."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpbots.simulation import Simulation
from warpbots.surfaces.skin import skins_of
from warpbots.trajectory import obstacles_at
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of, placed
from warpbots.view.film import figure_of, image_of
from warpbots.view.picture import SceneAxes
from warpbots.view.rigid_bodies import BodyPoses, outline, solids_of

__all__ = ["Frames"]

_WIDTH = 480  # of a picture [pixels]


class Frames:
    """Draws one world after another, always in pictures of the same size."""

    def __init__(self, simulation: Simulation[Any]):
        """Choose the view: twice as wide as the bodies at the start.

        Args:
            simulation: The simulation.
        """
        self._simulation, self._scene = simulation, simulation.scene
        self._particles, self._solids = particles_of(simulation).drawn, solids_of(simulation.scene)
        self._skins = skins_of(self._scene, self._particles)
        points = self._points(*placed(simulation, simulation.state()))
        self._middle, reach = _middle(points), np.ptp(points, axis=0)
        self._camera = Camera.around(self._scene, np.concatenate([points - 0.5 * reach, points + 0.5 * reach]))

    def of(self, state: Any, world: int, age: float, parameters: Mapping[str, torch.Tensor]) -> np.ndarray:
        """A picture of a world, shape (height, width, 3), uint8.

        Args:
            state: The state of all worlds.
            world: Index of the world.
            age: Time to show [s].
            parameters: Parameters that differ from those of the model, by name.
        """
        position, poses = placed(self._simulation, state, world, **parameters)
        shift = _middle(self._points(position, poses)) - self._middle
        shift[-1] = 0.0  # so that the ground stays where it is
        figure, places = figure_of(camera := self._moved(shift), _WIDTH)
        stage = SceneAxes(
            self._scene, self._particles, camera, figure.add_axes(places[0]), self._solids, skins=self._skins
        )
        obstacles = BodyPoses(*obstacles_at(self._simulation, state, world, **parameters))
        stage.show(position, poses=poses, time=age, obstacles=obstacles)
        return np.asarray(image_of(figure))

    def _points(self, position: np.ndarray, poses: BodyPoses) -> np.ndarray:
        return np.concatenate([position, outline(self._scene, self._solids, poses)])

    def _moved(self, shift: np.ndarray) -> Camera:
        camera = self._camera
        lower, upper = camera.box
        seen = camera.axes[:2] @ shift
        window = (camera.window[0] + seen, camera.window[1] + seen)
        return dataclasses.replace(camera, box=(lower + shift, upper + shift), window=window)


def _middle(points: np.ndarray) -> np.ndarray:
    """Middle of the box around points [m], shape (dim,)."""
    return 0.5 * (points.min(axis=0) + points.max(axis=0))
