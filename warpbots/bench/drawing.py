"""What a browser shows of one world of a simulation that runs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.bench.drives import tools_of
from warpbots.scene.motion_checks import changes_place
from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.skin import skins_of
from warpbots.trajectory import obstacles_at
from warpbots.view.browser.scene import BrowserScene, DrawnMoment
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of, placed
from warpbots.view.film import figure_of, image_of
from warpbots.view.moving_obstacles import displaced
from warpbots.view.palette import body_colors
from warpbots.view.picture import SceneAxes
from warpbots.view.rigid_bodies import BodyPoses, outline, solids_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from warpbots.simulation import Simulation

__all__ = ["Drawing"]

_PICTURE = 640  # width of a picture [pixels]
_REACH = 4.0  # how far the ground reaches beyond the first view, relative to the size of this view


class Drawing(BrowserScene):
    """What a browser shows of one world of a simulation."""

    def __init__(self, simulation: "Simulation[Any]", state: Any, world: int = 0):
        """Prepare the parts that stay the same.

        Args:
            simulation: The simulation.
            state: A state, which the first view frames.
            world: Index of the world.
        """
        self._simulation, self._world = simulation, world
        scene, matter = simulation.scene, particles_of(simulation).drawn
        self._solids = solids_of(scene)
        position, poses = placed(simulation, state, world)
        obstacles = BodyPoses(*obstacles_at(simulation, state, world))
        points = [position, outline(scene, self._solids, poses)]
        for k, obstacle in enumerate(scene.obstacles):
            bounds = displaced(obstacle.shape, obstacles.position[k], obstacles.rotation[k]).bounds
            if changes_place(obstacle, scene.actuators) and np.isfinite(bounds).all():
                points.append(box_corners(*bounds))
        camera = Camera.around(scene, np.concatenate(points))
        super().__init__(scene, matter, skins_of(scene, matter), self._solids, camera, obstacles[None], _REACH)

    def picture(self, state: Any, control: np.ndarray, time: float, **parameters: Any) -> "Image":
        """A picture of a state, as `warpbots.view.draw` draws it.

        Args:
            state: The state.
            control: Control signal, shape (channels,).
            time: Time to show [s].
            parameters: Tensors that replace parameters of the model, by name.
        """
        position, poses = placed(self._simulation, state, self._world, **parameters)
        camera = Camera.around(self.scene, np.concatenate([position, outline(self.scene, self._solids, poses)]))
        figure, places = figure_of(camera, _PICTURE)
        stage = SceneAxes(self.scene, self._matter, camera, figure.add_axes(places[0]), self._solids, skins=self._skins)
        obstacles = BodyPoses(*obstacles_at(self._simulation, state, self._world, **parameters))
        stage.show(position, control, poses=poses, time=time, obstacles=obstacles)
        return image_of(figure)

    def at(self, state: Any, control: np.ndarray, colors: np.ndarray | None = None, **parameters: Any) -> DrawnMoment:
        """The places of all bodies in a state.

        Args:
            state: The state.
            control: Control signal, shape (channels,); regions with an actuator show it by their colours.
            colors: Colours of the drawn particles instead: red, green and blue in [0, 1], shape (n, 3).
            parameters: Tensors that replace parameters of the model, by name.
        """
        position, poses = placed(self._simulation, state, self._world, **parameters)
        colors = body_colors(self.scene, self._matter, control) if colors is None else colors
        obstacles = BodyPoses(*obstacles_at(self._simulation, state, self._world, **parameters))
        return self.moment(position, colors, poses, obstacles)

    def header(self) -> dict[str, Any]:
        """What a browser needs to know, with ``held`` for each rigid mesh: whether the pointer can hold it."""
        header, tools, bodies = super().header(), tools_of(self.scene), len(self._solids)
        for k, mesh in enumerate(header["rigid"]):
            if mesh is not None:
                mesh["held"] = k < bodies or k - bodies in tools
        return header
