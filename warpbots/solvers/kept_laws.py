"""The laws of a scene as they are registered now, for models that are built after others were registered."""

import contextlib
from collections.abc import Callable

from warpbots.actuation_laws import acts_as_stress, kept_stress_laws, stress_law
from warpbots.materials import kept_laws, law_of
from warpbots.scene import Scene

__all__ = ["laws_as_now"]


def laws_as_now(scene: Scene) -> Callable[[], contextlib.AbstractContextManager]:
    """A function that returns a context, in which models of a scene are built with the laws of this moment.

    Args:
        scene: The scene, whose laws are registered.
    """
    laws = {name: law_of(name) for name in {body.material.law for body in scene.soft}}
    kinds = {type(a) for a in scene.actuators if acts_as_stress(a)}
    stresses = {kind: stress_law.dispatch(kind) for kind in kinds}

    @contextlib.contextmanager
    def as_then():
        with kept_laws(laws), kept_stress_laws(stresses):
            yield

    return as_then
