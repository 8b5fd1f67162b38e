"""Forces and torques on obstacles, constraints and rigid bodies, as readings of a state."""

import numpy as np
import pytest
import torch
from loose_bodies import GAP, SIDE, G, cube, last, pile, slab, tumbling
from scipy.spatial.transform import Rotation
from soft_bodies import beam, breathing, cloth, damped, guided, machine, mixed, sliding, strung, swimming

import warpbots as wb
from warpbots.numerics import precision
from warpbots.observers import ContactForces, ObstacleForces
from warpbots.scene import Box, Constraint, HalfSpace, Material, Obstacle, Posed, RigidBody, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import build

DOUBLE = precision == "float64"
TIGHT = 1e-13 if DOUBLE else None
RUBBER = Material(1e5, 0.3, 1000.0, "corotated")
KINDS = ("contact", "constraint", "body_contact")


def simulated(scene: Scene, dt: float, cell: float = 0.04, worlds: int = 1, **options) -> Simulation:
    """Steps of one length, whose forces are measured."""
    options = {"elements": "tetrahedra", "tolerance": 1e-11 if DOUBLE else None, "contact_interval": dt} | options
    return Simulation(scene, ProjectiveDynamics(cell, **options), dt, substeps=1, worlds=worlds)


def read(readings, kind: str, what: str = "force") -> np.ndarray:
    return getattr(readings, f"{kind}_{what}").double().numpy()


def block(corner=(0.0, 0.0, 0.0), size=(0.08, 0.08, 0.08), **parts) -> SoftBody:
    return SoftBody("block", Box(corner, tuple(np.add(corner, size))), RUBBER, **parts)


def test_a_block_weighs_on_a_floor_beside_the_origin():
    """Its weight, with the torque of the weight at its centre of mass; the same for any length of the step."""
    scene = Scene(
        (block((0.3, -0.2, 0.0)),),
        obstacles=(floor(friction=0.5), Obstacle(HalfSpace((0, 0, -1), (0, 0, 1)), name="low")),
    )
    sim = simulated(scene, 1e-2)
    state = last(sim, 60)
    weight = np.array([0.0, 0.0, -1000.0 * 0.08**3 * G])
    at = sim.center_of_mass(state)[0].double().numpy()
    for interval in (1e-2, 2e-3):
        readings = simulated(scene, 1e-2, contact_interval=interval).sense(state)
        np.testing.assert_allclose(read(readings, "contact")[0], [weight, np.zeros(3)], atol=1e-3 * -weight[2])
        torque = read(readings, "contact", "torque")[0, 0]
        np.testing.assert_allclose(torque, np.cross(at, weight), atol=1e-3 * np.abs(weight).max() * 0.3)
    assert read(readings, "constraint").shape == (1, 0, 3)


@pytest.mark.parametrize(("mu", "sticks"), ((0.5, True), (0.3, False)))
def test_a_block_on_an_incline_obeys_coulomb(mu, sticks):
    """Below the angle of friction the incline carries the weight, above it mu times the normal force."""
    tilted = G * np.array([np.sin(0.4), 0.0, -np.cos(0.4)])
    sim = simulated(Scene((block(),), obstacles=(floor(friction=mu),), gravity=tuple(tilted)), 5e-3)
    state, mass = last(sim, 120), 1000.0 * 0.08**3
    force = read(sim.sense(state), "contact")[0, 0]
    along = tilted[0] if sticks else mu * G * np.cos(0.4)
    np.testing.assert_allclose(force, [mass * along, 0.0, mass * tilted[2]], atol=5e-3 * mass * G)
    assert (float(state.velocity[0, :, 0].mean()) > 0.1) == (not sticks)


def test_a_block_is_pressed_between_two_plates():
    """By 5 % without friction: E A (l^2 - 1 / l^2) would be an incompressible law; the linear one has E A (1 - l)."""
    block_ = SoftBody("block", Box((0, 0, 0), (0.08, 0.08, 0.08)), Material(1e5, 0.3, 1000.0, "linear"))
    press = Obstacle(
        HalfSpace((0, 0, 0.08), (0, 0, -1)), "separate", name="press",
        motion=wb.PrescribedMotion([0.0, 0.5], [[0, 0, 0], [0, 0, -0.004]], interpolation="linear", beyond="hold"),
    )  # fmt: skip
    scene = Scene((block_,), obstacles=(floor(condition="separate"), press), gravity=(0.0, 0.0, 0.0))
    sim = simulated(scene, 0.05)
    force = read(sim.sense(last(sim, 40)), "contact")[0]
    np.testing.assert_allclose(force[1], [0.0, 0.0, 1e5 * 0.08**2 * 0.05], atol=1e-3 * 32.0)
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-4 * 32.0)


@pytest.mark.parametrize("holds", (True, False))
def test_two_jaws_hold_twice_mu_n_and_no_more(holds):
    """Two plates press a block: they carry its weight if that is less than 2 mu N, and slip with 2 mu N if it is more."""
    mu, matter = 0.4, Material(1e5, 0.3, 1000.0, "corotated")
    body = SoftBody("block", Box((0, 0, 0), (0.08, 0.08, 0.08)), matter)
    squeeze = [[0, 0, 0], [0.002, 0, 0]]
    jaws = [
        Obstacle(
            HalfSpace((x, 0, 0), (s, 0, 0)), "friction", mu, name=name,
            motion=wb.PrescribedMotion([0.0, 0.1], s * np.array(squeeze), interpolation="linear", beyond="hold"),
        )
        for name, x, s in (("left", 0.0, 1.0), ("right", 0.08, -1.0))
    ]  # fmt: skip
    sim = simulated(Scene((body,), obstacles=tuple(jaws), gravity=(0.0, 0.0, 0.0)), 5e-3)
    state, weight = last(sim, 60), 1000.0 * 0.08**3 * G
    pressed = abs(read(sim.sense(state), "contact")[0, :, 0]).mean()
    ratio = 0.8 if holds else 1.5
    gravity = torch.tensor([[0.0, 0.0, -ratio * 2.0 * mu * pressed / weight * G]])
    for _ in range(60):
        state = sim.step(state, torch.zeros(0), gravity=gravity)
    force = read(sim.sense(state, gravity=gravity), "contact")[0]
    normal = abs(force[:, 0])
    assert normal == pytest.approx([pressed, pressed], rel=0.1)
    carried = ratio * 2.0 * mu * pressed if holds else mu * normal.sum()
    assert -force[:, 2].sum() == pytest.approx(carried, rel=2e-3)
    assert (float(-state.velocity[0, :, 2].mean()) > 0.1) == (not holds)


def test_a_rigid_cube_on_a_slab_and_a_pile():
    """The cube feels its weight, the floor both weights, and the bottom of a slab that is held instead of a floor, too."""
    body, weight = cube("cube", (0.02, 0.03, 0.05 + GAP), 2000.0), 2000.0 * SIDE**3 * G
    base = slab((0.1, 0.1, 0.05))
    own = 1000.0 * 0.1 * 0.1 * 0.05 * G
    for scene, kind in (
        (Scene((slab((0.1, 0.1, 0.05), height=0.0), body), obstacles=(floor(),)), "contact"),
        (Scene((base, body), constraints=(Constraint("bottom"),)), "constraint"),
    ):
        sim = simulated(scene, 1e-2, 0.025)
        state = last(sim, 60)
        readings = sim.sense(state)
        np.testing.assert_allclose(read(readings, "body_contact")[0, 0], [0, 0, weight], atol=5e-3 * weight)
        np.testing.assert_allclose(read(readings, kind)[0, 0], [0, 0, -weight - own], atol=5e-3 * weight)
        torque = np.cross(readings.center[0, 0].numpy(), [0, 0, weight])
        np.testing.assert_allclose(read(readings, "body_contact", "torque")[0, 0], torque, atol=1e-2 * weight * SIDE)
    sim = simulated(pile(2, 3.0), 5e-3, 0.03)
    readings, weight = sim.sense(last(sim, 40)), 1000.0 * SIDE**3 * G
    np.testing.assert_allclose(read(readings, "body_contact")[0, :, 2], [weight, 3.0 * weight], rtol=2e-3)
    np.testing.assert_allclose(read(readings, "contact")[0, 0], [0, 0, -4.0 * weight], atol=5e-3 * weight)


def pressed() -> Scene:
    """A bar between a clamp and a rail that move, under the edge of a box that presses, drags and turns."""
    ends = {"left": Box((-1, -1, -1), (0.01, 1, 1)), "right": Box((0.15, -1, -1), (1, 1, 1))}
    bar = SoftBody("bar", Box((0, 0, 0), (0.16, 0.08, 0.08)), RUBBER, ends, velocity=(0.0, 0.1, 0.2))
    moves = [[0, 0, 0], [1e-3, 5e-4, 1e-3], [0, 0, 0]]
    motion = wb.PrescribedMotion([0, 0.02, 1.0], moves, np.diag([0, 0.02, 0.03]), (0.1, 0, 0))
    jaws = [
        Constraint("left", name="clamp", motion=motion),
        Constraint("right", "line", (1, 0.2, 0.5), name="rail", motion=motion),
    ]
    box = Obstacle(Box((0.05, -0.1, 0.0805), (0.11, 0.045, 0.2)), name="box", surface_velocity=(0.2, 0.1, 0.0))
    drives = [
        wb.actuators.VelocityDrive("press", "box", 0.5, (0.1, 0.2, -1)),
        wb.actuators.VelocityDrive("turn", "box", 0.5, (1, 0.2, 0), kind="rotation", pivot=(0.08, 0, 0.1)),
    ]
    return Scene([bar], drives, [floor(-0.0005), box], constraints=jaws)


def stacked() -> Scene:
    """A cube askew on another one that a constraint holds at its side, on a floor."""
    lower = block(velocity=(0.1, 0.0, -0.1), regions={"side": HalfSpace((1e-6, 0, 0), (1, 0, 0))})
    turned = Posed(Box((-0.03,) * 3, (0.03,) * 3), (0.05, 0.03, 0.1112), Rotation.from_euler("z", 0.4).as_matrix())
    upper = SoftBody("upper", turned, RUBBER, velocity=(0.2, 0.1, -0.3), friction=0.3)
    return Scene((lower, upper), obstacles=(floor(-0.0005, friction=0.4),), constraints=(Constraint("side"),))


RIDGE = Obstacle(
    Posed(
        Box((-0.1, -0.2, -0.1), (0.1, 0.2, 0.1)), (0.05, 0.04, -0.001 - 0.1 * 2**0.5),
        Rotation.from_euler("yz", [45, 20], degrees=True).as_matrix(),
    ),
    friction=0.3,
)  # fmt: skip
CASES = {
    "guided": lambda: guided(damped(strung()), HalfSpace((0.159, 0, 0.04), (-1, 0, 1)), (0.2, 0.1, 1.0)),
    "breathing": breathing,
    "swimming": lambda: swimming(beam("neo_hookean")),
    "mixed": mixed,
    "cloth": lambda: cloth((floor(-0.012, friction=0.3),)),
    "machine": lambda: machine(youngs_modulus=1e5, held=True),
    "slides": lambda: sliding("neo_hookean", (floor(friction=0.3),)),
    "ridge": lambda: sliding("corotated", (RIDGE,), (0.3, 0.1, -0.3)),
    "stacked": stacked,
    "pressed": pressed,
    "loose": tumbling,
    "rigid": lambda: tumbling(False),
}
CONTACTS = {"slides", "ridge", "stacked", "pressed", "loose", "rigid", "cloth"}


def prepared(name: str, rng) -> tuple[Simulation, dict, list[str]]:
    """A simulation, all inputs of its measurement at random, and the names of the fields of its state."""
    dt = 4e-3
    sim = simulated(CASES[name](), dt, tolerance=TIGHT, worlds=2, collisions=name not in ("machine", "mixed"))
    fields = [n for n, t in vars(sim.state()).items() if t.numel() and n not in ("lost", "shorter_steps")]
    start = sim.state()
    with torch.no_grad():
        for _ in range(6 if name in CONTACTS else 2):
            start = sim.step(start, torch.full((2, sim.channels), 0.3))
    inputs = {n: sim.parameter(n).clone() for n in sim.parameters()}
    inputs |= {n: getattr(start, n).clone() for n in fields}
    inputs["control"] = torch.full((2, sim.channels), 0.3) + 0.1 * torch.as_tensor(rng.random((2, sim.channels)))
    inputs["gravity"] = inputs["gravity"] + 0.3 * torch.as_tensor(rng.normal(size=(2, 3)))
    return sim, {n: t.double() if DOUBLE else t for n, t in inputs.items()}, fields


def sensed(sim: Simulation, values: dict, fields: list[str]):
    state = sim.state(**{n: values[n] for n in fields})
    return sim.sense(state, values["control"], **{n: values[n] for n in sim.parameters()})


@pytest.mark.parametrize("name", [n for n in CASES if n != "swimming"])
def test_forces_are_what_momentum_misses(name, rng):
    """The step of this length gives obstacles and constraints what its bodies do not gain; torques of matter as well."""
    sim, inputs, fields = prepared(name, rng)
    with torch.no_grad():
        before = sensed(sim, inputs, fields)
        state = sim.state(**{n: inputs[n] for n in fields})
        parameters = {n: inputs[n] for n in sim.parameters()}
        after = sim.step(state, inputs["control"], **parameters)
        gained = (sim.sense(after, inputs["control"], **parameters).momentum - before.momentum).double().numpy()
    nodes = sim.model.mesh
    node_mass, gravity = nodes.density * nodes.volume, inputs["gravity"].double().numpy()
    rigid = inputs["mass"].double().numpy() if "mass" in inputs else np.zeros((2, 0))
    load = inputs["load"].double().numpy() if "load" in inputs else np.zeros((2, len(nodes), 3))
    outer = node_mass[:, None] * gravity[:, None] + load
    weight = outer.sum(axis=1) + rigid.sum(axis=1)[:, None] * gravity
    force = sum(read(before, k).sum(axis=1) for k in KINDS[:2])
    scale = sum(np.abs(read(before, k)).sum() for k in KINDS[:2])
    assert scale > 0.0
    error = 1e-9 if DOUBLE else 2e-3
    np.testing.assert_allclose(force, weight - gained / sim.dt, atol=error * (scale + np.abs(gained).max() / sim.dt))
    if not rigid.size and name != "machine":  # a motor has its arms at the start of a step
        x, v, u = (t.double().numpy() for t in (after.position, after.velocity, inputs["velocity"]))
        torque = sum(read(before, k, "torque").sum(axis=1) for k in KINDS[:2])
        inertial = np.cross(x, node_mass[:, None] * (v - u) / sim.dt).sum(axis=1)
        if name == "stacked":
            error = 1e-3  # friction has an arm in the gap that bodies keep
        np.testing.assert_allclose(torque, np.cross(x, outer).sum(axis=1) - inertial, atol=2.0 * error * scale)


@pytest.mark.verification
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name, rng):
    """By the state, the control and every parameter; and Taylor remainders of second order.

    A reading is NaN where the whole step is not found, which may happen to one of all probing steps.
    """
    sim, inputs, fields = prepared(name, rng)
    first = sensed(sim, inputs, fields)
    names = [f"{k}_{w}" for k in KINDS for w in ("force", "torque") if hasattr(first, f"{k}_{w}")]
    weights = {n: torch.as_tensor(rng.normal(size=getattr(first, n).shape)) for n in names}

    def loss(values: dict) -> torch.Tensor:
        found = sensed(sim, values, fields)
        return sum((weights[n] * getattr(found, n)).sum() for n in names)

    leaves = {n: t.clone().requires_grad_() for n, t in inputs.items() if t.numel()}
    gradients = dict(zip(leaves, torch.autograd.grad(loss(inputs | leaves), leaves.values()), strict=True))
    start, moved, missed = float(loss(inputs)), set(), 0
    for what, value in leaves.items():
        value = value.detach()
        direction = torch.as_tensor(rng.normal(size=value.shape)) * (value.abs().mean() or 1.0)
        if what not in fields:
            direction = torch.where(value == 0.0, 0.0, direction) if what != "load" else direction
        slope = float((gradients[what] * direction).sum())
        steepest = float(gradients[what].norm() * direction.norm())
        with torch.no_grad():
            errors, taylor = [], []
            for step in (1e-4, 1e-5, 1e-6):
                there, back = (float(loss(inputs | {what: value + s * step * direction})) for s in (1.0, -1.0))
                errors.append(abs((there - back) / (2.0 * step) - slope))
                taylor.append(abs(there - start - step * slope))
        print(what, slope, errors, taylor)
        missed += int(np.isnan(errors).sum())
        assert missed <= 1, (what, errors)
        assert np.nanmin(errors) <= 1e-5 * max(abs(slope), 1e-2 * steepest) + 1e-9 * abs(start), (what, slope, errors)
        if slope:
            moved.add(what)
    assert {"gravity", *fields} - {"time", "travel"} <= moved, moved


@pytest.mark.parametrize("name", ("stacked", "rigid"))
def test_forces_turn_with_the_scene(name, rng):
    """All that is turned about the origin has turned forces and torques."""
    R = Rotation.from_euler("xyz", [0.3, -0.5, 0.9]).as_matrix()

    def turned(scene: Scene) -> Scene:
        bodies = [
            SoftBody(b.name, Posed(b.shape, (0, 0, 0), R), b.material, {n: Posed(s, (0, 0, 0), R) for n, s in
                     b.regions.items()}, velocity=tuple(R @ b.velocity), friction=b.friction)
            if isinstance(b, SoftBody) else
            RigidBody(b.name, b.shape, b.density, position=tuple(R @ b.position), rotation=R, friction=b.friction)
            for b in scene.bodies
        ]  # fmt: skip
        obstacles = [Obstacle(HalfSpace(tuple(R @ o.shape.point), tuple(R @ o.shape.normal)), o.condition, o.friction)
                     for o in scene.obstacles]  # fmt: skip
        return Scene(bodies, obstacles=obstacles, constraints=scene.constraints, gravity=tuple(R @ scene.gravity))

    scene = CASES[name]()
    if name == "rigid":
        scene = pile(2, 2.0)
    found = []
    for one in (scene, turned(scene)):
        sim = simulated(one, 4e-3)
        found.append(sim.sense(last(sim, 12)))
    for kind in KINDS:
        for what in ("force", "torque"):
            if hasattr(found[0], f"{kind}_{what}") and read(found[0], kind, what).size:
                a, b = (read(r, kind, what) for r in found)
                assert np.abs(a).max() > 0.0
                np.testing.assert_allclose(b, a @ R.T, atol=(1e-4 if DOUBLE else 2e-2) * np.abs(a).max())


def test_observers_of_obstacles_and_rigid_bodies():
    """What a floor gives to a pile, and what each of its cubes feels; without an interval the remedy is named."""
    sim = simulated(pile(2, 3.0), 5e-3, 0.03)
    state, weight = last(sim, 40), 1000.0 * SIDE**3 * G
    floors, bodies = ObstacleForces().bind(sim)(state), ContactForces(("cube 1",)).bind(sim)(state)
    np.testing.assert_allclose(floors[0].numpy(), [0, 0, 4.0 * weight], atol=5e-3 * weight)
    np.testing.assert_allclose(bodies[0].numpy(), [0, 0, 3.0 * weight], atol=5e-3 * weight)
    plain = Simulation(sim.scene, ProjectiveDynamics(0.03), 5e-3)
    assert not {"contact_force", "body_contact_force"} & vars(plain.sense(plain.state())).keys()
    with pytest.raises(TypeError, match="contact_interval, the length of the step to measure, such as 0.005 s"):
        ContactForces().bind(plain)
    with pytest.raises(ValueError, match=r"contact_interval must be positive and finite \[s\], got 0; use the step"):
        ProjectiveDynamics(contact_interval=0.0)


def test_a_step_that_fails_reads_nan_and_a_lost_world_zero():
    """A step of one iteration does not converge; the state and the reports of steps are not touched."""
    sim = simulated(Scene((block(),), obstacles=(floor(),)), 1e-2)
    state = last(sim, 20)
    assert read(sim.sense(state), "contact")[0, 0, 2] < -1.0
    with pytest.raises(RuntimeError, match="the last thing that ran was not a step of 0.01 s"):
        sim.report()
    assert "contact_force" not in vars(sim.sense(state, steps=False))
    short = simulated(sim.scene, 1e-2, max_iterations=1)
    assert np.isnan(read(short.sense(state), "contact")).all()
    lost = sim.state(**{n: t for n, t in vars(state).items() if n != "lost"}, lost=torch.ones(1))
    assert not read(sim.sense(lost), "contact").any()


def test_forces_in_a_rollout_have_gradients():
    """Of the forces after every step, to friction and the stiffness, through the whole motion; against differences."""
    sim = simulated(sliding("corotated", (floor(friction=0.3),)), 4e-3, tolerance=TIGHT)
    names = ("friction", "youngs_modulus", "density")

    def loss(values: dict) -> torch.Tensor:
        run = sim.rollout(None, 5, observe=lambda s: sim.sense(s, **values).contact_force[:, 0], **values)
        return run.observation.square().sum()

    values = {n: sim.parameter(n).clone() for n in names}
    leaves = {n: t.clone().requires_grad_() for n, t in values.items()}
    gradients = dict(zip(names, torch.autograd.grad(loss(leaves), leaves.values()), strict=True))
    for name in names:
        slope, error = float((gradients[name] * values[name]).sum()), 1e-5 if DOUBLE else 0.05
        e = 1e-5 if DOUBLE else 1e-2
        with torch.no_grad():
            ends = [float(loss(values | {name: values[name] * (1.0 + s * e)})) for s in (1.0, -1.0)]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2.0 * e), rel=error), name


def test_readings_grow_with_their_contacts(monkeypatch):
    """If the step of a measurement finds no room for its pairs, the model grows, for later steps as well."""
    scene = Scene((slab((0.1, 0.1, 0.05)), cube("cube", (0.02, 0.02, 0.05 + GAP))), constraints=(Constraint("bottom"),))
    sim = simulated(scene, 1e-2, 0.025)
    roomy = last(sim, 4)
    expected = read(sim.sense(roomy), "body_contact")
    with monkeypatch.context() as patch:
        patch.setattr(build, "_room", lambda *_: 2)
        small = simulated(scene, 1e-2, 0.025)
    assert small.model.topology.sizes.capacity == 2
    small.step(small.state(q=roomy.q + torch.tensor([0, 0, 0.1, 0, 0, 0, 0])), torch.zeros(0))  # with the little room
    assert small.model.topology.sizes.capacity == 2
    found = small.sense(roomy)
    np.testing.assert_allclose(read(found, "body_contact"), expected, rtol=1e-9)
    assert small.model.topology.sizes.capacity > 2
    after, other = (s.step(roomy, torch.zeros(0)) for s in (small, sim))
    assert torch.equal(after.position, other.position)
