"""Scenes of assemblies whose first link is fixed, with a motor at each hinge."""

from typing import Any

import torch

from warpbots.design.assembly import Assembly
from warpbots.scene import Joint, Scene, Torque
from warpbots.scene.field_types import checked

__all__ = ["mounted"]


@checked
def mounted(
    assembly: Assembly,
    factors: torch.Tensor | None = None,
    torque: float = 0.06,
    damping: float = 0.01,
    **options: Any,
) -> Scene:
    """A scene of an assembly whose first link is fixed to the world, with a motor at each hinge and without contact.

    The defaults of torque and damping are the values for the finger in DiffHand (Xu et al. 2021).

    Args:
        assembly: The robot.
        factors: Scale factors [1], shape (n,); None for the nominal shape.
        torque: Torque of each motor at a control of 1 [N m].
        damping: Damping of each hinge [N m s/rad].
        **options: Further fields of the `Scene`, such as `gravity`.

    Raises:
        SceneError: A number is out of range.
    """
    hinges = assembly.joints(factors, damping=damping)
    mount = Joint("mount", "fixed", None, assembly.links[0].name)
    motors = [Torque(hinge.name, hinge.name, torque) for hinge in hinges]
    return Scene(assembly.bodies(factors, points=0), motors, joints=[mount, *hinges], **options)
