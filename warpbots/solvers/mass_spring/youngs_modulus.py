"""Spring constants for Young's moduli that replace the moduli of the scene.

If the modulus of a spring is multiplied by r, its stiffness is multiplied by r. Its damping is also multiplied by r,
because the time constant of Kelvin-Voigt damping is a constant of the material. The strain that an actuator with a
given stress causes is divided by r.
"""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_own_adjoint, real

__all__ = ["ScaledSprings"]


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledSprings:
    """Constants of springs whose Young's moduli were replaced; every step computes the constants anew.

    Attributes:
        own: Young's moduli of the scene [Pa], shape (worlds, n_springs).
        youngs_modulus: Young's moduli that replace the moduli of the scene [Pa], shape (worlds, n_springs).
        given: Stiffness [N/m] and damping [N s/m] of the springs at the moduli of the scene, each of shape (worlds,
            n_springs).
        ratio: Ratio `youngs_modulus` / `own` [1], shape (worlds, n_springs); filled only if `driven`.
        stiffness: Spring constants at the new moduli [N/m], shape (worlds, n_springs).
        damping: Damping along the springs at the new moduli [N s/m], shape (worlds, n_springs); filled only if
            `damped`.
        damped: Whether springs have damping; otherwise `damping` is not filled.
        driven: Whether actuators change rest lengths; otherwise `ratio` is not filled.
    """

    own: wp.array
    youngs_modulus: wp.array
    given: tuple[wp.array, wp.array]
    ratio: wp.array
    stiffness: wp.array
    damping: wp.array
    damped: bool
    driven: bool

    @staticmethod
    def of(
        own: wp.array, youngs_modulus: wp.array, stiffness: wp.array, damping: wp.array, damped: bool, driven: bool
    ) -> "ScaledSprings":
        """Create the constants with new arrays for ratio, stiffness and damping, which `fill` then fills."""
        given = stiffness, damping
        gradient = any(a.requires_grad for a in (youngs_modulus, *given))
        made = (wp.zeros(a.shape, real, a.device, requires_grad=gradient) for a in (youngs_modulus, *given))
        return ScaledSprings(own, youngs_modulus, given, *made, damped, driven)

    def fill(self) -> None:
        """Compute the ratio of the moduli, the stiffness and the damping of each spring."""
        inputs, outputs = self._flat()
        launch(self._kernel(), self.ratio.size, inputs, outputs, self.ratio.device)

    def clear_gradients(self) -> None:
        """Clear the gradients with respect to ratio, stiffness and damping, if these arrays have gradients."""
        if self.ratio.requires_grad:
            clear_gradients([self.ratio, self.stiffness, self.damping])

    def adjoint(self) -> None:
        """Adjoint of `fill`: add to the gradients of the moduli and of the stiffness and damping in `given`."""
        if self.ratio.requires_grad:
            inputs, outputs = self._flat()
            launch_own_adjoint(self._kernel(), self.ratio.size, [*inputs, *outputs], self.ratio.device)

    def _kernel(self) -> wp.Kernel:
        return _scale_kernel(self.damped, self.driven)

    def _flat(self) -> tuple[list[wp.array], list[wp.array]]:
        """Inputs and outputs of the kernel, each flattened over all worlds."""
        inputs, outputs = [self.own, self.youngs_modulus, *self.given], [self.stiffness, self.damping, self.ratio]
        return [a.flatten() for a in inputs], [a.flatten() for a in outputs]


@functools.cache
def _scale_kernel(damped: bool, driven: bool) -> wp.Kernel:
    """Kernel over the springs of all worlds: computes the constants at the new moduli; differentiated by Warp.

    Args:
        damped: Whether the kernel computes the damping.
        driven: Whether the kernel computes the ratio of the moduli.
    """

    @wp.kernel(module=wp.get_module(f"warpbots.springs.scale_{damped:d}{driven:d}"))
    def scale(
        # model
        own: wp.array[real],
        youngs_modulus: wp.array[real],
        stiffness: wp.array[real],
        damping: wp.array[real],
        # out
        stiffness_out: wp.array[real],
        damping_out: wp.array[real],
        ratio_out: wp.array[real],
    ):
        """r = E / E_0, k = r k_0, c = r c_0, with the modulus E_0, stiffness k_0 and damping c_0 of the scene."""
        s = wp.tid()
        r = youngs_modulus[s] / own[s]
        stiffness_out[s] = r * stiffness[s]
        if wp.static(damped):
            damping_out[s] = r * damping[s]
        if wp.static(driven):
            ratio_out[s] = r

    return scale
