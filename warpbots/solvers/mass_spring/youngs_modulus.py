"""What follows where Young's moduli of springs take the place of those of the scene.

A spring of r times the modulus has r times the stiffness; it has r times the damping, because the time of
Kelvin-Voigt damping is one of its material; and an actuator that exerts a stress strains it by 1 / r as much.
"""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_adjoint, real

__all__ = ["ScaledSprings"]


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledSprings:
    """Constants of springs whose moduli were replaced; every step fills them anew.

    Attributes:
        own: Young's moduli of the scene [Pa], shape (worlds, n_springs).
        youngs_modulus: Those in their place [Pa], shape (worlds, n_springs).
        given: Stiffness [N/m] and damping [N s/m] at the moduli of the scene, each of shape (worlds, n_springs).
        ratio: Moduli over those of the scene [1], shape (worlds, n_springs).
        stiffness: Spring constants [N/m], shape (worlds, n_springs).
        damping: Damping along the springs [N s/m], shape (worlds, n_springs).
    """

    own: wp.array
    youngs_modulus: wp.array
    given: tuple[wp.array, wp.array]
    ratio: wp.array
    stiffness: wp.array
    damping: wp.array

    @staticmethod
    def of(own: wp.array, youngs_modulus: wp.array, stiffness: wp.array, damping: wp.array) -> "ScaledSprings":
        """Constants of springs, filled."""
        given = stiffness, damping
        gradient = any(a.requires_grad for a in (youngs_modulus, *given))
        made = (wp.zeros(a.shape, real, a.device, requires_grad=gradient) for a in (youngs_modulus, *given))
        scaled = ScaledSprings(own, youngs_modulus, given, *made)
        scaled.fill()
        return scaled

    def fill(self) -> None:
        """Compute the constants."""
        launch(_scale_kernel(), self.ratio.shape, self._inputs(), self._outputs(), self.ratio.device)

    def clear_gradients(self) -> None:
        """Gradients with respect to the constants to zero, if there are any."""
        clear_gradients(a for a in self._outputs() if a.requires_grad)

    def adjoint(self) -> None:
        """Add to the gradients of what the constants follow from."""
        if self.ratio.requires_grad:
            gradients = [[a.grad for a in arrays] for arrays in (self._inputs(), self._outputs())]
            kernel, shape = _scale_kernel(), self.ratio.shape
            launch_adjoint(kernel, shape, self._inputs(), self._outputs(), *gradients, self.ratio.device)

    def _inputs(self) -> list[wp.array]:
        return [self.own, self.youngs_modulus, *self.given]

    def _outputs(self) -> list[wp.array]:
        return [self.ratio, self.stiffness, self.damping]


@functools.cache
def _scale_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs); differentiated by Warp."""

    @wp.kernel(module=wp.get_module("warpbots.springs.scale"))
    def scale(
        # model
        own: wp.array2d[real],
        youngs_modulus: wp.array2d[real],
        stiffness: wp.array2d[real],
        damping: wp.array2d[real],
        # out
        ratio_out: wp.array2d[real],
        stiffness_out: wp.array2d[real],
        damping_out: wp.array2d[real],
    ):
        """r = E / E_0, k = r k_0, c = r c_0."""
        w, s = wp.tid()
        r = youngs_modulus[w, s] / own[w, s]
        ratio_out[w, s] = r
        stiffness_out[w, s] = r * stiffness[w, s]
        damping_out[w, s] = r * damping[w, s]

    return scale
