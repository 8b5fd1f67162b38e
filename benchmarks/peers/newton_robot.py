"""A walker of masses and springs in Newton, with its gradient by Warp's tape: the peer of ``beside_peers.py robot``.

The semi-implicit solver steps the same lattice; muscles change the rest lengths of springs, once for each control
interval. Contact is Newton's own: with the depth d of a mass, its speed v_n of approach and its tangential velocity
v_t, the normal force k d and the friction min(k_f |v_t|, mu k d), with one k and one k_f for all masses. Forward and
backward pass are captured and replayed, and no other feature is switched on. It answers controls as ``serve.py`` says
(``pip install newton``).
"""

import newton
import numpy as np
import warp as wp
from serve import serve


@wp.kernel
def contract(
    interval: int, length: wp.array[float], gain: wp.array2d[float], u: wp.array2d[float], rest: wp.array[float]
):
    """Rest lengths l0 (1 + sum of gain times control) in an interval."""
    s = wp.tid()
    strain = float(0.0)
    for c in range(4):
        strain += gain[s, c] * u[interval, c]
    rest[s] = length[s] * (1.0 + strain)


@wp.kernel
def add_distance(share: wp.array[float], start: wp.array[wp.vec3], end: wp.array[wp.vec3], loss: wp.array[float]):
    """Minus the displacement of the centre of mass along x."""
    i = wp.tid()
    wp.atomic_sub(loss, 0, share[i] * (end[i][0] - start[i][0]))


class NewtonRobot:
    """Rollouts under a table of controls, and the gradient of the distance walked."""

    def __init__(self, options, data):
        self.per, self.intervals, self.dt = options["substeps"], options["intervals"], options["dt"]
        builder = newton.ModelBuilder(gravity=tuple(options["gravity"]))
        n = len(data["position"])
        builder.add_particles(data["position"].tolist(), [(0.0, 0.0, 0.0)] * n, data["mass"].tolist(), radius=[0.0] * n)
        for (i, j), k, c in zip(data["ends"].tolist(), data["stiffness"], data["damping"], strict=True):
            builder.add_spring(i, j, float(k), float(c), 0.0)
        ke, kf, mu = options["contact_stiffness"], options["friction_slope"], options["friction"]
        if options["contact"]:
            ground = newton.ModelBuilder.ShapeConfig(ke=ke, kd=0.0, kf=kf, mu=mu)
            builder.add_ground_plane(height=options["floor"], cfg=ground)
        self.model = model = builder.finalize(device="cpu", requires_grad=True)
        model.particle_grid = None  # no contact between particles
        model.soft_contact_ke, model.soft_contact_kd = ke, 0.0
        model.soft_contact_kf, model.soft_contact_mu = kf, mu
        self.solver = newton.solvers.SolverSemiImplicit(model)
        self.pipeline = None
        if options["contact"]:  # in an interval, masses may touch that are within a cell of the floor when it begins
            self.pipeline = newton.CollisionPipeline(
                model, broad_phase="explicit", soft_contact_gap=options["spacing"], requires_grad=True
            )
            self.contacts = [self.pipeline.contacts() for _ in range(self.intervals)]
        self.states = [model.state() for _ in range(self.intervals * self.per + 1)]
        self.u = wp.zeros((self.intervals, 4), dtype=float, requires_grad=True)
        self.rest = [wp.zeros(model.spring_count, dtype=float, requires_grad=True) for _ in range(self.intervals)]
        self.length = wp.array(data["rest_length"], dtype=float)
        self.gain = wp.array(data["gain"], dtype=wp.float32)
        self.share = wp.array(data["mass"] / data["mass"].sum(), dtype=float)
        self.mass = data["mass"]
        self.loss, self.tape = wp.zeros(1, dtype=float, requires_grad=True), wp.Tape()
        self.forward = self.captured(self.run)
        with self.tape:
            self.run()
        self.backward = self.captured(self.adjoint)

    def run(self):
        """One episode."""
        self.loss.zero_()
        for k, rest in enumerate(self.rest):
            wp.launch(contract, rest.size, [k, self.length, self.gain, self.u], [rest])
            self.model.spring_rest_length = rest
            contacts = None
            if self.pipeline is not None:
                contacts = self.contacts[k]
                self.pipeline.collide(self.states[k * self.per], contacts)
            for s in range(k * self.per, (k + 1) * self.per):
                self.states[s].clear_forces()
                self.solver.step(self.states[s], self.states[s + 1], None, contacts, self.dt)
        ends = [self.states[0].particle_q, self.states[-1].particle_q]
        wp.launch(add_distance, len(self.mass), [self.share, *ends], [self.loss])

    def adjoint(self):
        """Its gradient."""
        self.tape.zero()
        self.tape.backward(self.loss)

    @staticmethod
    def captured(work):
        """A graph of launches, after a first run that compiles them."""
        work()
        with wp.ScopedCapture(device="cpu") as capture:
            work()
        return capture.graph

    def episode(self, controls):
        """Loss, minus the distance [m], and its gradient."""
        self.u.assign(controls.astype(np.float32))
        wp.capture_launch(self.forward)
        wp.capture_launch(self.backward)
        return float(self.loss.numpy()[0]), self.u.grad.numpy().copy()

    def path(self):
        """Positions at the end of each interval of the last episode [m]."""
        return np.array([state.particle_q.numpy().ravel() for state in self.states[self.per :: self.per]])


def prepare(options):
    """Build the robot and capture both passes."""
    wp.config.log_level = wp.LOG_WARNING
    robot = NewtonRobot(options, np.load(options["scene"]))
    return f"Newton {newton.__version__}", robot.episode, robot.path


if __name__ == "__main__":
    serve(prepare)
