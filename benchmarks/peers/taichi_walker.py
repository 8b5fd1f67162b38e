"""A walker of MLS-MPM in Taichi, with its gradient by Taichi's autodiff: the peer of ``beside_peers.py walker``.

The step is that of ``taichi_mpm.py``, with a muscle stress u s (F n)(F n)^T along y in driven particles, and a floor
with Coulomb friction at the nodes at and below y = 0 instead of a sticky box. It answers controls as ``serve.py`` says
(``pip install taichi``).
"""

import numpy as np
from serve import serve
from taichi_mpm import GRAVITY, TaichiMPM, ti


@ti.data_oriented
class TaichiWalker(TaichiMPM):
    """Rollouts under a table of controls, and the gradient of the distance walked.

    Args:
        options: Sizes of the scene.
        data: Arrays: `position`, measured from the first node [m]; `channel` of each particle, -1 for passive ones.
    """

    def __init__(self, options, data):
        self.per, self.intervals, self.channels = options["substeps"], options["intervals"], options["channels"]
        self.floor, self.friction = options["floor_node"], options["friction"]
        keys = ("dx", "resolution", "dt", "youngs_modulus", "poissons_ratio", "density")
        super().__init__(
            data["position"],
            steps=self.per * self.intervals,
            threads=1,
            needs_grad=True,
            **{k: options[k] for k in keys},
        )
        self.u = ti.field(float, (self.intervals, self.channels), needs_grad=True)
        self.channel = ti.field(ti.i32, self.n)
        self.channel.from_numpy(data["channel"].astype(np.int32))
        self.driven = ti.field(float, self.n)
        self.driven.from_numpy(np.where(data["channel"] >= 0, options["max_stress"], 0.0).astype(np.float32))
        self.start = data["position"][:, 0].mean()

    @ti.func
    def stress(self, s, p, f):
        """Kirchhoff stress of matter and muscle."""
        active = self.driven[p] * self.u[s // self.per, ti.max(self.channel[p], 0)]
        return self.elastic_stress(p, f) + active * f[:, 1].outer_product(f[:, 1])

    @ti.kernel
    def grid_op(self):
        """Momentum to velocity, with gravity, and Coulomb's law at the nodes of the floor.

        A node that slides keeps the share 1 - mu |v_n| / |v_t| of its tangential velocity; one that separates, all.
        """
        ti.loop_config(parallelize=self.threads)
        for i, j in self.grid_m:
            if self.grid_m[i, j] > 0.0:
                vx = self.grid_p[i, j][0] / self.grid_m[i, j]
                vy = self.grid_p[i, j][1] / self.grid_m[i, j] - GRAVITY * self.dt
                if j <= self.floor and vy < 0.0:
                    if vx > -self.friction * vy:
                        self.grid_v[i, j] = ti.Vector([vx + self.friction * vy, 0.0])
                    elif vx < self.friction * vy:
                        self.grid_v[i, j] = ti.Vector([vx - self.friction * vy, 0.0])
                    else:
                        self.grid_v[i, j] = ti.Vector([0.0, 0.0])
                else:
                    self.grid_v[i, j] = ti.Vector([vx, vy])

    def episode(self, controls):
        """Loss, minus the distance [m] of the mean position along x, and its gradient."""
        self.u.from_numpy(controls.astype(np.float32))
        self.u.grad.fill(0.0)
        self.forward()
        self.backward()
        return self.start - self.loss[None], -self.u.grad.to_numpy()

    def path(self):
        """Positions at the end of each interval of the last episode [m], measured from the first node."""
        ends = self.x.to_numpy()[self.per :: self.per]
        return ends.reshape(len(ends), -1)


def prepare(options):
    """Build the walker; its kernels are compiled when they first run."""
    ti.init(arch=ti.cpu, cpu_max_num_threads=1, default_fp=ti.f32, offline_cache=False, log_level=ti.ERROR)
    walker = TaichiWalker(options, np.load(options["scene"]))
    return "Taichi " + ".".join(map(str, ti.__version__)), walker.episode, walker.path


if __name__ == "__main__":
    serve(prepare)
