"""A custom solver, for ``Simulation(scene, ExplicitFEM(0.05), ...)``: linear tetrahedra, symplectic Euler."""

import dataclasses
from math import inf, sqrt

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActivationArrays, activation, active_stress
from warpbots.materials import elasticity, p_wave_modulus
from warpbots.meshing import tetrahedra
from warpbots.numerics import clear_gradients, launch_all, launch_own_adjoint, matrix, real, record, vector
from warpbots.scene import Material, Scene, SceneError
from warpbots.solvers import ArrayModel, Matter, Parameter, device_array, regions_at, tiled
from warpbots.solvers.projective import NodalState as State  # position and velocity of nodes
from warpbots.solvers.scene_support import refuse_states_without_gradient

vec, mat, piola, active = vector(3), matrix(3), elasticity("neo_hookean", 0, 3)[2], active_stress(3)


@dataclasses.dataclass(frozen=True)
class Model(ArrayModel):
    scene: Scene
    worlds: int
    device: wp.Device
    matter: Matter  # all nodes at rest
    tets: wp.array  # nodes of each tetrahedron, shape (n_tets,)
    inverse: wp.array  # takes its edges to its deformation gradient [1/m], shape (n_tets,), matrix
    muscles: object  # which actuators drive which tetrahedron
    youngs_modulus: wp.array  # [Pa], shape (worlds, n_tets)
    mass: wp.array  # [kg], shape (worlds, n_nodes)
    gravity: wp.array  # [m/s^2], shape (worlds,), vector
    force: wp.array  # elastic forces [N], which every step computes anew, shape (worlds, n_nodes), vector
    robot, tables = None, property(lambda m: {"node": np.c_[: len(m.matter)], "tetrahedron": m.tets.numpy()})

    def parameters(self):
        E = Parameter("Pa", 0.0, inf, "tetrahedron", "Young's modulus", intensive=True)
        m, g = Parameter("kg", 0.0, inf, "node", "mass"), Parameter("m/s^2", -inf, inf, "axis", "gravity")
        return {"youngs_modulus": E, "mass": m, "gravity": g}


@wp.kernel
def elastic(tets: wp.array[wp.vec4i], inverse: wp.array[mat], muscles: ActivationArrays, E: wp.array2d[real], nu: real,
            control: wp.array2d[real], x: wp.array2d[vec], force_out: wp.array2d[vec]):  # fmt: skip
    """(f_1, f_2, f_3) = -V (P(F) + F A) D^-T, F = (x_1 - x_0, x_2 - x_0, x_3 - x_0) D^-1, f_0 = -f_1 - f_2 - f_3."""
    w, e = wp.tid()
    t, B, o = tets[e], inverse[e], x[w, tets[e][0]]
    F = wp.matrix_from_cols(x[w, t[1]] - o, x[w, t[2]] - o, x[w, t[3]] - o) @ B
    P = piola(F, E[w, e], nu) + F @ active(muscles, e, w, control, F)
    f = -P @ wp.transpose(B) / (real(6.0) * wp.determinant(B))
    for a in range(3):
        wp.atomic_add(force_out, w, t[a + 1], vec(f[0, a], f[1, a], f[2, a]))
        wp.atomic_sub(force_out, w, t[0], vec(f[0, a], f[1, a], f[2, a]))


@wp.kernel
def move(m: wp.array2d[real], g: wp.array[vec], h: real, f: wp.array2d[vec], x: wp.array2d[vec], v: wp.array2d[vec],
         x_out: wp.array2d[vec], v_out: wp.array2d[vec]):  # fmt: skip
    """v' = v + h (g + f / m), x' = x + h v'."""
    w, n = wp.tid()
    u = v[w, n] + h * (g[w] + f[w, n] / m[w, n])
    x_out[w, n] = x[w, n] + h * u
    v_out[w, n] = u


@dataclasses.dataclass(frozen=True)
class ExplicitFEM:
    cell_size: float  # [m]
    margin, lost_gradient = 0.3, "the motion diverges: simulate fewer steps, or halve dt"

    def build(self, scene, worlds=1, device=None):
        known = Scene(scene.soft, scene.actuators, gravity=scene.gravity, domain=scene.domain)
        plain = [Material(m.youngs_modulus, m.poissons_ratio, m.density) for b in scene.soft for m in b.materials]
        if scene != known or [m for b in scene.soft for m in b.materials] != plain or len(plain) != 1:
            raise SceneError("ExplicitFEM simulates one neo-Hookean body with pressures and muscles under gravity")
        body, mesh = scene.soft[0], tetrahedra(scene.soft[0].shape, self.cell_size)
        x, corners = mesh.vertices, mesh.vertices[mesh.tets]
        centers, D = corners.mean(axis=1), np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
        volume, ones = np.bincount(mesh.tets.ravel(), np.linalg.det(D).repeat(4) / 24.0), np.ones(len(x), int)
        v, rho = np.outer(ones, body.velocity or (0.0, 0.0, 0.0)), body.material.density * ones
        return Model(
            scene, worlds, wp.get_device(device), Matter(x, v, volume, rho, 0 * ones, regions_at(body, x, 1e-9)),
            device_array(mesh.tets, device, wp.vec4i), device_array(np.linalg.inv(D), device, mat),
            activation(dict(enumerate(scene.actuators)), regions_at(body, centers), len(D), 3, device),
            tiled([body.material.youngs_modulus] * len(D), worlds, device), tiled(rho * volume, worlds, device),
            tiled(scene.gravity, worlds, device, vec), wp.zeros((worlds, len(x)), vec, device, requires_grad=True),
        )  # fmt: skip

    def state(self, model, requires_grad=False):
        rest = model.matter.position, model.matter.velocity
        return State(*(tiled(a, model.worlds, model.device, vec, requires_grad) for a in rest))

    def launches(self, model, state, control, state_out, dt):
        model.force.zero_()  # to which the tetrahedra add
        nu, f, x = model.scene.soft[0].material.poissons_ratio, model.force, state.position
        forces = [model.tets, model.inverse, model.muscles, model.youngs_modulus, nu, control, x, f]
        motion = [model.mass, model.gravity, dt, f, *state.fields(), *state_out.fields()]
        return (elastic, (model.worlds, len(model.tets)), forces, []), (move, f.shape, motion, [])

    def step(self, model, state, control, state_out, dt):
        launch_all(self.launches(model, state, control, state_out, dt), model.device)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self.step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def step_adjoint(self, model, state, control, state_out, dt):
        refuse_states_without_gradient("ExplicitFEM", state=state.fields(), state_out=state_out.fields())
        forces, motion = self.launches(model, state, control, state_out, dt)
        launch_all([forces], model.device)  # those of this step, not of the last one
        clear_gradients([model.force])
        launch_own_adjoint(*motion[:3], model.device)
        launch_own_adjoint(*forces[:3], model.device)

    def max_time_step(self, model, enough=inf):
        """The smallest height of a tetrahedron over the speed of its compression waves, sqrt(M / rho)."""
        E, nu = float(model.youngs_modulus.numpy().max()), model.scene.soft[0].material.poissons_ratio
        c = sqrt(p_wave_modulus(E, nu, 0) / (model.mass.numpy() / model.matter.volume).min())
        return 1.0 / (np.linalg.norm(model.inverse.numpy().astype(float), axis=2).max() * c)

    def diagnose(self, model, before, after, dt):
        return f"a node has no finite position after a step of {dt:.3g} s: use more substeps"
