"""Explicit MLS-MPM in Taichi with Taichi's autodiff: a peer for the benchmark ratios.

One step moves particles (x, v, C, F) through a grid of quadratic B-spline weights w (MLS-MPM, Hu et al. 2018, with the
affine transfer of APIC), in 2D or 3D:

    F <- (I + dt C) F,    tau = mu (F F^T - I) + lam ln(det F) I
    (m v)_i = sum_p w_ip [m v + (m C - dt V 4/dx^2 tau) (x_i - x)],    m_i = sum_p w_ip m
    v_i <- (m v)_i / m_i + dt g, and 0 in the outermost 3 nodes (sticky box)
    v <- sum_i w_ip v_i,    C <- 4/dx^2 sum_i w_ip v_i (x_i - x)^T,    x <- x + dt v

The gradient follows DiffTaichi (Hu et al. 2020): particle states of all steps are kept, and the grid of a step is
recomputed before the reverse kernels of that step run.

Run it in an interpreter that has Taichi, with one JSON argument; it prints one JSON line:

    python taichi_mpm.py '{"dim": 3, "positions": "x.npy", "dx": 0.015625, "resolution": [64, 64, 64], "dt": 1e-4,
        "youngs_modulus": 1e5, "poissons_ratio": 0.3, "density": 1000.0, "steps": 20, "repeats": 5, "gradient": true,
        "precision": "float32", "threads": 1}'
"""

import contextlib
import json
import os
import statistics
import sys
import time

import numpy as np

os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "0"  # standard output carries the JSON line only

import taichi as ti

GRAVITY = 9.81  # m/s^2, along -y
BOUNDARY = 3  # nodes of the sticky box on each side


@ti.data_oriented
class TaichiMPM:
    """A rollout of a fixed number of steps and its reverse-mode gradient.

    Three choices in the kernels are for speed, all measured with Taichi 1.7.4 on one CPU thread in 3D:

    - `loop_config` states the number of threads: with one, Taichi drops the atomics, and p2g runs 5 times faster.
    - Nothing that enters nonlinearly is built up in a mutable local variable, as `weight *= ...` and the `@` operator
      of matrices would do. Autodiff keeps a stack for each such local; without them p2g.grad compiles in 10 s instead
      of 115 s and runs 2.5 times faster.
    - The stencil loops are unrolled. Dynamic loops compile faster still, but p2g.grad is then 4 to 12 times slower, and
      its gradient is wrong.

    Args:
        positions: Initial particle positions in metres, shape (n, dim); the grid origin is at 0.
        dx: Grid spacing in metres; a particle has the volume dx^dim / 2^dim.
        resolution: Number of grid nodes per axis.
        dt: Time step in seconds.
        youngs_modulus: Young's modulus in Pa.
        poissons_ratio: Poisson's ratio.
        density: Density in kg/m^dim.
        steps: Number of steps of the rollout.
        threads: Number of CPU threads of a kernel.
        needs_grad: Whether to allocate the adjoint fields.
    """

    def __init__(
        self,
        positions,
        *,
        dx,
        resolution,
        dt,
        youngs_modulus,
        poissons_ratio,
        density,
        steps,
        threads,
        needs_grad,
    ):
        self.n, self.dim = positions.shape
        dim = self.dim
        self.dx, self.inv_dx, self.dt, self.steps, self.threads = dx, 1.0 / dx, dt, steps, threads
        self.volume = dx**dim / 2**dim
        self.mass = density * self.volume

        state, adjoint = (steps + 1, self.n), {"needs_grad": needs_grad}
        self.x = ti.Vector.field(dim, float, state, **adjoint)
        self.v = ti.Vector.field(dim, float, state, **adjoint)
        self.C = ti.Matrix.field(dim, dim, float, state, **adjoint)
        self.F = ti.Matrix.field(dim, dim, float, state, **adjoint)
        self.grid_p = ti.Vector.field(dim, float, resolution, **adjoint)
        self.grid_m = ti.field(float, resolution, **adjoint)
        self.grid_v = ti.Vector.field(dim, float, resolution, **adjoint)
        self.loss = ti.field(float, (), **adjoint)
        self.mu, self.lam = ti.field(float, self.n), ti.field(float, self.n)
        self.free = ti.field(float, resolution)

        free = np.zeros(resolution)
        free[(slice(BOUNDARY, -BOUNDARY),) * dim] = 1.0
        self.free.from_numpy(free)
        self.mu.fill(youngs_modulus / (2.0 * (1.0 + poissons_ratio)))
        self.lam.fill(youngs_modulus * poissons_ratio / ((1.0 + poissons_ratio) * (1.0 - 2.0 * poissons_ratio)))
        self.set_state(positions, np.zeros_like(positions))

    @ti.kernel
    def set_state(self, x: ti.types.ndarray(), v: ti.types.ndarray()):
        """Set the initial positions and velocities; C = 0 and F = I."""
        for p in range(self.n):
            for d in ti.static(range(self.dim)):
                self.x[0, p][d] = ti.cast(x[p, d], float)
                self.v[0, p][d] = ti.cast(v[p, d], float)
            self.C[0, p] = ti.Matrix.zero(float, self.dim, self.dim)
            self.F[0, p] = ti.Matrix.identity(float, self.dim)

    @ti.kernel
    def clear_grid(self):
        """Zero the grid that the particles scatter to."""
        ti.loop_config(parallelize=self.threads)
        for node in ti.grouped(self.grid_m):
            self.grid_p[node] = ti.Vector.zero(float, self.dim)
            self.grid_m[node] = 0.0

    @ti.kernel
    def clear_grid_grad(self):
        """Zero the adjoints of the grid."""
        ti.loop_config(parallelize=self.threads)
        for node in ti.grouped(self.grid_m):
            self.grid_p.grad[node] = ti.Vector.zero(float, self.dim)
            self.grid_m.grad[node] = 0.0
            self.grid_v.grad[node] = ti.Vector.zero(float, self.dim)

    @ti.kernel
    def clear_state_grad(self):
        """Zero the adjoint of the initial state; reverse kernels zero the adjoints of later states after their use."""
        ti.loop_config(parallelize=self.threads)
        for p in range(self.n):
            self.x.grad[0, p] = ti.Vector.zero(float, self.dim)
            self.v.grad[0, p] = ti.Vector.zero(float, self.dim)
            self.C.grad[0, p] = ti.Matrix.zero(float, self.dim, self.dim)
            self.F.grad[0, p] = ti.Matrix.zero(float, self.dim, self.dim)

    @ti.func
    def matvec(self, a, b):
        """Matrix times vector as one expression."""
        if ti.static(self.dim == 2):
            return a[:, 0] * b[0] + a[:, 1] * b[1]
        else:
            return a[:, 0] * b[0] + a[:, 1] * b[1] + a[:, 2] * b[2]

    @ti.func
    def matmul(self, a, b):
        """Matrix times matrix as one expression."""
        return ti.Matrix.cols([self.matvec(a, b[:, k]) for k in range(self.dim)])

    @ti.func
    def stencil(self, x):
        """Lowest node of the stencil, position relative to it in units of dx, and weights (axis, node)."""
        base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
        fx = x * self.inv_dx - ti.cast(base, float)
        return base, fx, ti.Matrix.cols([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2])

    @ti.func
    def weight(self, w, offset: ti.template()):
        """Weight of one node of the stencil."""
        if ti.static(self.dim == 2):
            return w[0, offset[0]] * w[1, offset[1]]
        else:
            return w[0, offset[0]] * w[1, offset[1]] * w[2, offset[2]]

    @ti.func
    def elastic_stress(self, p, f):
        """Kirchhoff stress of a neo-Hookean particle, as one expression."""
        eye = ti.Matrix.identity(float, self.dim)
        return self.mu[p] * (self.matmul(f, f.transpose()) - eye) + self.lam[p] * ti.log(f.determinant()) * eye

    @ti.func
    def stress(self, s, p, f):
        """Kirchhoff stress of a particle in step s, to which a walker adds its muscles."""
        return self.elastic_stress(p, f)

    @ti.kernel
    def p2g(self, s: ti.i32):
        """Update F and scatter momentum and mass of step s."""
        ti.loop_config(parallelize=self.threads)
        for p in range(self.n):
            base, fx, w = self.stencil(self.x[s, p])
            eye = ti.Matrix.identity(float, self.dim)
            f_new = self.matmul(eye + self.dt * self.C[s, p], self.F[s, p])
            self.F[s + 1, p] = f_new
            tau = self.stress(s, p, f_new)
            affine = self.mass * self.dx * self.C[s, p] - self.dt * self.volume * 4.0 * self.inv_dx * tau
            momentum = self.mass * self.v[s, p] - self.matvec(affine, fx)
            for offset in ti.static(ti.grouped(ti.ndrange(*(3,) * self.dim))):
                weight = self.weight(w, offset)
                self.grid_p[base + offset] += weight * (momentum + self.matvec(affine, offset))
                self.grid_m[base + offset] += weight * self.mass

    @ti.kernel
    def grid_op(self):
        """Momentum to velocity, with gravity and the sticky box; a node without mass is never read with a weight."""
        ti.loop_config(parallelize=self.threads)
        for node in ti.grouped(self.grid_m):
            if self.grid_m[node] > 0.0:
                g = ti.Vector([-GRAVITY * self.dt if d == 1 else 0.0 for d in range(self.dim)])
                self.grid_v[node] = self.free[node] * (self.grid_p[node] / self.grid_m[node] + g)

    @ti.kernel
    def g2p(self, s: ti.i32):
        """Gather velocity and its gradient, and move the particles to step s + 1."""
        ti.loop_config(parallelize=self.threads)
        for p in range(self.n):
            base, fx, w = self.stencil(self.x[s, p])
            v = ti.Vector.zero(float, self.dim)
            moment = ti.Matrix.zero(float, self.dim, self.dim)
            for offset in ti.static(ti.grouped(ti.ndrange(*(3,) * self.dim))):
                node_v = self.weight(w, offset) * self.grid_v[base + offset]
                v += node_v
                moment += node_v.outer_product(offset)
            self.v[s + 1, p] = v
            self.C[s + 1, p] = 4.0 * self.inv_dx * (moment - v.outer_product(fx))
            self.x[s + 1, p] = self.x[s, p] + self.dt * v

    @ti.kernel
    def mean_x(self):
        """Add the mean x coordinate of the final state to the loss."""
        ti.loop_config(parallelize=self.threads)
        for p in range(self.n):
            self.loss[None] += self.x[self.steps, p][0] / self.n

    def step(self, s):
        """One step, from state s to state s + 1."""
        self.clear_grid()
        self.p2g(s)
        self.grid_op()
        self.g2p(s)

    def step_grad(self, s):
        """Reverse of one step: recompute its grid, then pull the adjoint of state s + 1 back to state s."""
        self.clear_grid()
        self.clear_grid_grad()
        self.p2g(s)
        self.grid_op()
        self.g2p.grad(s)
        self.grid_op.grad()
        self.p2g.grad(s)

    def forward(self):
        """Run all steps."""
        for s in range(self.steps):
            self.step(s)
        ti.sync()

    def backward(self):
        """Gradient of the mean x coordinate of the final state, after a forward pass."""
        self.clear_state_grad()
        self.loss[None] = 0.0
        self.loss.grad[None] = 1.0
        self.mean_x()
        self.mean_x.grad()
        for s in reversed(range(self.steps)):
            self.step_grad(s)
        ti.sync()


def measure(call, repeats, typical):
    """Time a call that compiles its kernels when it first runs.

    Args:
        call: Function without arguments that returns when its work is done.
        repeats: Number of timed calls after the first one.
        typical: Function of the times of these calls, such as their median.

    Returns:
        Typical time of a call in seconds, and how much longer than that the first call took.
    """
    times = []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    time_of_call = typical(times[1:])
    return time_of_call, times[0] - time_of_call


def main(options):
    """Run one measurement.

    Args:
        options: The settings listed in the docstring of this file.

    Returns:
        The report, ready for JSON.
    """
    with contextlib.redirect_stdout(sys.stderr):  # Taichi announces its backend
        ti.init(
            arch=ti.cpu,
            cpu_max_num_threads=options["threads"],
            default_fp={"float32": ti.f32, "float64": ti.f64}[options["precision"]],
            offline_cache=False,
            log_level=ti.ERROR,
        )
    positions = np.load(options["positions"]).astype(np.float64)
    if positions.shape[1:] != (options["dim"],) or len(options["resolution"]) != options["dim"]:
        raise ValueError("positions must have shape (n, dim), and resolution one entry per axis")
    settings = ("dx", "resolution", "dt", "youngs_modulus", "poissons_ratio", "density", "steps", "threads")
    sim = TaichiMPM(positions, needs_grad=options["gradient"], **{key: options[key] for key in settings})

    def gradient():
        sim.forward()
        sim.backward()

    steps, repeats = options["steps"], options["repeats"]
    typical = min if options.get("least") else statistics.median
    forward_s, forward_compile_s = measure(sim.forward, repeats, typical)
    gradient_s, backward_compile_s = measure(gradient, repeats, typical) if options["gradient"] else (None, None)
    return {
        "peer": "taichi " + ".".join(map(str, ti.__version__)),
        "items": sim.n,
        "steps": steps,
        "forward_s_per_step": forward_s / steps,
        "gradient_s_per_step": gradient_s / steps if options["gradient"] else None,
        "compile_s": {"forward": forward_compile_s, "backward": backward_compile_s},
        "final_mean_x": float(sim.x.to_numpy()[steps, :, 0].mean(dtype=np.float64)),
        "grad_sum": sim.v.grad.to_numpy()[0].sum(axis=0, dtype=np.float64).tolist() if options["gradient"] else None,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
