"""Bad input: each gets one sentence that names the thing, its value, the allowed range and the remedy."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

import warpbots as wb
from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, SceneError, TriangleMesh, memory_limit

BOX = Box((0.1, 0.1), (0.3, 0.3))


def body(**changes):
    return wb.SoftBody(**{"name": "bot", "shape": BOX, "material": wb.Material(1e4)} | changes)


def scene(**changes):
    return wb.Scene(**{"bodies": [body()], "domain": ((0.0, 0.0), (0.6, 0.6))} | changes)


def simulation(**changes):
    options = {"dt": 2e-3, "substeps": 2} | changes
    s = options.pop("scene", None) or scene()
    return wb.Simulation(s, wb.MPM(0.05), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wb.Material(0.0), r"youngs_modulus must be positive \[Pa\], got 0;"),
        (lambda: wb.Material(-1e4), r"youngs_modulus must be positive \[Pa\], got -10000"),
        (lambda: wb.Material(float("nan")), r"Material: youngs_modulus must be a finite number, got nan"),
        (lambda: wb.Material(1e4, 0.5), r"poissons_ratio must be in \(-1, 0.5\), got 0.5; .*0.45 to 0.48"),
        (lambda: wb.Material(1e4, -1.0), r"poissons_ratio must be in \(-1, 0.5\), got -1"),
        (lambda: wb.Material(1e4, 0.3, 0.0), r"density must be positive .*got 0"),
        (lambda: wb.Material(1e4, incompressibility=3), r"even exponent .*got 3"),
        (lambda: wb.materials.VonMises(0.0), r"VonMises: yield_stress must be positive \[Pa\], got 0; .*5e3"),
        (lambda: wb.materials.VonMises(1e3, -1.0), r"VonMises: hardening must be a modulus >= 0 \[Pa\], got -1;"),
        (
            lambda: wb.materials.DruckerPrager(0.0),
            r"friction_angle must be in \(0, 90\) degrees, got 0; dry sand has 30",
        ),
        (lambda: wb.materials.DruckerPrager(90.0), r"friction_angle must be in \(0, 90\) degrees, got 90"),
        (
            lambda: wb.Material(1e4, law="hencky", incompressibility=2, plasticity=wb.materials.DruckerPrager(30.0)),
            r"DruckerPrager .*, got incompressibility=2; use incompressibility=0",
        ),
        (
            lambda: wb.Material(1e4, plasticity=wb.materials.VonMises(1e3)),
            r"plasticity=VonMises\(...\) .*, got law='neo_hookean'; use law='hencky'",
        ),
        (lambda: wb.Obstacle(BOX, friction=-0.1), r"friction must be a coefficient >= 0, got -0.1"),
        (lambda: wb.Obstacle(BOX, "glue"), r"condition must be one of sticky, slip, separate, friction, got 'glue'"),
        (lambda: Box((0.0, 0.0), (1.0, 0.0)), r"every coordinate of lower .* must be below upper"),
        (
            lambda: wb.actuators.Pressure("p", "leg", -1.0),
            r"Pressure 'p': max_pressure must be positive \[Pa\], got -1",
        ),
        (
            lambda: wb.actuators.Muscle("m", "leg", (0.0, 0.0), 1.0),
            r"Muscle 'm': direction must not be the zero vector",
        ),
        (lambda: wb.actuators.Cable("c", [(0.0, 0.0)], 1.0), r"Cable 'c': waypoints must be at least two points"),
        (lambda: HalfSpace((0.0, 0.0), (0.0, 0.0)), r"HalfSpace.normal must not be the zero vector"),
        (lambda: wb.MPM(0.0), r"MPM: dx must be positive \[m\], got 0"),
        (lambda: wb.Checkpoints.every(0), r"k must be at least 1 control interval, got 0"),
        (lambda: wb.Checkpoints("all", 3), r"k is for 'every' alone, got 'all' and k 3; leave out k"),
    ],
)
def test_values_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def tetrahedron():
    return np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), np.array(
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    )


def test_open_mesh_is_refused_with_its_open_edges():
    vertices, faces = tetrahedron()
    with pytest.raises(SceneError, match=r"not watertight: 3 open edges \(first 1-2\)"):
        TriangleMesh(vertices, faces[:3])


def test_flipped_mesh_is_turned_outside_out():
    vertices, faces = tetrahedron()
    assert TriangleMesh(vertices, faces[:, ::-1]).volume == pytest.approx(1 / 6)


def test_empty_mesh_is_refused():
    with pytest.raises(SceneError, match="non-empty"):
        TriangleMesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=int))


@pytest.mark.parametrize(("color", "kind"), [((255, 255, 255), "RGB"), ((0, 0, 0, 0), "RGBA"), ((0, 0, 0), "RGB")])
def test_image_without_silhouette(tmp_path, color, kind):
    Image.new(kind, (8, 8), color).save(tmp_path / "blank.png")
    with pytest.raises(SceneError, match="blank.png has no silhouette"):
        wb.shapes.load_silhouette(tmp_path / "blank.png", height=0.1)


def test_missing_files_are_named(tmp_path):
    for load in (
        wb.shapes.load_mesh,
        wb.shapes.load_tetrahedra,
        lambda p: wb.shapes.load_sheet(p, 0.1),
        lambda p: wb.shapes.load_silhouette(p, 0.1),
    ):
        with pytest.raises(FileNotFoundError, match="there is no file .*nothing.x"):
            load(tmp_path / "nothing.x")


def test_region_that_selects_nothing():
    s = scene(bodies=[body(regions={"tail": Box((0.5, 0.5), (0.55, 0.55))})])
    with pytest.raises(SceneError, match=r"'bot': region 'tail' .* selects 0 of \d+ particles"):
        simulation(scene=s)


def test_actuator_on_a_missing_region_and_all_other_faults_at_once():
    with pytest.raises(SceneError) as error:
        scene(
            bodies=[body(regions={"leg": BOX}), body()],
            actuators=[wb.actuators.Pressure("p", "lag", 1.0)],
            obstacles=[wb.floor(dim=3)],
        )
    text = str(error.value)
    assert "2 bodies are named 'bot'" in text
    assert "there is no region 'lag'; the scene has leg" in text
    assert "Obstacle 'floor' is 3D in a 2D scene" in text


def test_body_outside_of_the_domain():
    with pytest.raises(SceneError, match="leaves the domain .*enlarge Scene.domain or move the body"):
        scene(domain=((0.0, 0.0), (0.2, 0.6)))


def test_unknown_law():
    with pytest.raises(SceneError, match="law must be one of neo_hookean, .*got 'jelly'"):
        simulation(scene=scene(bodies=[body(material=wb.Material(1e4, law="jelly"))]))


def test_cable_off_the_body():
    with pytest.raises(SceneError, match=r"Cable 'c': waypoint 1 at \(0.5, 0.5\) is .* m from the nearest matter"):
        simulation(scene=scene(actuators=[wb.actuators.Cable("c", [(0.2, 0.2), (0.5, 0.5)], 1.0)]))


def test_time_step_over_the_bound():
    with pytest.raises(
        ValueError, match=r"solver step of 0.1 s .* over the stability bound of 0.0\d+ s; use substeps=\d+"
    ):
        simulation(dt=0.1, substeps=1)


def test_time_step_near_the_bound_warns():
    bound = simulation().max_time_step
    with pytest.warns(UserWarning, match=r"is 0\.\d+ of the stability bound"):
        simulation(dt=0.7 * bound, substeps=1)


def actuated():
    return simulation(
        scene=scene(bodies=[body(regions={"leg": BOX})], actuators=[wb.actuators.Pressure("puff", "leg", 100.0)])
    )


def test_controls():
    sim = actuated()
    with pytest.raises(ValueError, match=r"table of controls must have shape \(1, 4, 1\) .* got \(4, 3\)"):
        sim.rollout(torch.zeros(4, 3), 4)
    table = torch.zeros(4, 1)
    table[2, 0] = float("nan")
    with pytest.raises(ValueError, match=r"control\[0, 0\] of actuator 'puff' is nan at control step 2"):
        sim.rollout(table, 4)
    with pytest.raises(ValueError, match=r"'puff' is 1.5 at control step 0; controls must be in \[-1, 1\]"):
        sim.rollout(torch.full((4, 1), 1.5), 4)


def test_parameters():
    sim = actuated()
    with pytest.raises(ValueError, match=r"no parameter 'stiffness'; the model has youngs_modulus"):
        sim.rollout(None, 1, stiffness=torch.ones(1))
    with pytest.raises(ValueError, match=r"'poissons_ratio' must be in \(-1, 0.5\), got 0.6 at index \[0, 0\]"):
        sim.rollout(None, 1, poissons_ratio=torch.tensor(0.6))
    with pytest.raises(ValueError, match=r"'density' must have shape \(1, \d+\) or one that broadcasts"):
        sim.rollout(None, 1, density=torch.ones(3))
    with pytest.raises(ValueError, match="no field 'speed'; a state has position, velocity"):
        sim.state(speed=torch.ones(2))
    with pytest.raises(ValueError, match=r"field 'velocity' must be finite, got nan in world 0 at index \[0, 1\]"):
        sim.state(velocity=torch.tensor([0.0, float("nan")]))


def test_friction_is_a_parameter_only_where_something_is_rough():
    with pytest.raises(ValueError, match="no parameter 'friction'; the model has youngs_modulus"):
        simulation(scene=scene(obstacles=[wb.floor(condition="slip", dim=2)])).rollout(
            None, 1, friction=torch.tensor(0.5)
        )
    assert "friction" in simulation(scene=scene(obstacles=[wb.floor(friction=0.3, dim=2)])).parameters()


def test_leaving_the_grid_names_step_particle_and_remedy():
    sim = simulation(scene=scene(bodies=[body(velocity=(0.0, -3.0))], gravity=(0.0, 0.0)))
    with pytest.raises(wb.SimulationError, match=r"control step \d+, substep \d \(t = 0.\d+ s\): particle \d+ of 'bot' in world 0 left the grid at .* add a floor or walls"):  # fmt: skip
        sim.rollout(None, 200)


@pytest.mark.filterwarnings("ignore:Muscle 'm'. max_stress of 1e.06 Pa is 100 times")
def test_divergence_names_step_field_and_cause():
    s = scene(bodies=[body(regions={"leg": BOX})], actuators=[wb.actuators.Muscle("m", "leg", (0.0, 1.0), 1e6)])
    sim = simulation(scene=s)
    with pytest.raises(
        wb.SimulationError,
        match=r"control step \d+, substep \d .*(not finite|more than a cell in one step|left the grid)",
    ):
        sim.rollout(torch.ones(50, 1), 50)


def test_open_loop_table_that_is_too_short():
    sim = actuated()
    with pytest.raises(IndexError, match="table has 2 control intervals, but interval 2 was requested"):
        sim.rollout(wb.controllers.OpenLoop(sim, 2), 3)


def test_nan_loss_stops_the_fit():
    p = torch.zeros(1, requires_grad=True)
    with pytest.raises(FloatingPointError, match="the loss is nan in iteration 0"):
        wb.fit([p], lambda: (p / p).sum(), progress=False)


def test_interrupted_fit_keeps_the_best():
    p = torch.tensor([3.0], requires_grad=True)
    calls = []

    def loss():
        calls.append(p.item())
        if len(calls) == 4:
            raise KeyboardInterrupt
        return (p**2).sum()

    history = wb.fit([p], loss, torch.optim.SGD, lr=0.1, iterations=10, progress=False)
    assert history.interrupted
    assert len(history.loss) == 3
    assert p.item() == calls[2]


def test_unwritable_places_leave_nothing_behind(tmp_path):
    history = wb.optimize.History([1.0], [0.1])
    with pytest.raises(OSError, match=r"cannot write .*nowhere.*loss.csv: there is no folder .*nowhere; create it"):
        history.write_csv(tmp_path / "nowhere" / "loss.csv")
    assert not list(tmp_path.iterdir())


def test_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "loss.csv"
    wb.optimize.History([1.0], [0.1]).write_csv(path)
    before = path.read_text()
    from warpbots.optimize import history as module

    class Full:
        def writerow(self, row):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.csv, "writer", lambda file: Full())
    with pytest.raises(OSError, match=r"cannot write .*loss.csv: No space left on device; nothing was changed there"):
        wb.optimize.History([2.0], [0.1]).write_csv(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["loss.csv"]


def test_worlds_and_particles_per_cell():
    with pytest.raises(ValueError, match="worlds must be at least 1, got 0"):
        simulation(worlds=0)
    for count in (5, -4, 10**400):
        with pytest.raises(ValueError, match=r"particles_per_cell must be a square such as 4 or 9 in 2D, got -?[1-9]"):
            wb.Simulation(scene(), wb.MPM(0.05, particles_per_cell=count), 1e-3)


def test_scene_is_not_changed_by_replacing_a_part():
    s = scene()
    assert dataclasses.replace(s, name="other") != s
    assert dataclasses.replace(s) == s


# what is no number, no list and no shape


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wb.Material("1e4"), "Material: youngs_modulus must be a finite number, got '1e4'"),
        (lambda: wb.Material(None), "Material: youngs_modulus must be a finite number, got None"),
        (lambda: wb.Material(True), "youngs_modulus must be a finite number, got True"),
        (lambda: wb.Material(10**400), "youngs_modulus must be a finite number, got 1000"),
        (lambda: wb.Material(1e4, incompressibility=2.5), "incompressibility must be a whole number, got 2.5"),
        (lambda: body(shape="box"), "SoftBody 'bot': shape must be a Box, Sphere, .* or Posed, got 'box'"),
        (lambda: body(material=wb.Material), r"must be a Material, got the class Material; make one with Material\(...\)"),
        (lambda: body(velocity=(0.0, float("nan"))), r"velocity\[1\] must be a finite number, got nan"),
        (lambda: body(velocity=(1.0, 0.0, 0.0)), "velocity .* must have 2 components"),
        (lambda: body(color=(1.0, 0.0)), r"color must be a list of 3 finite numbers, got \(1.0, 0.0\)"),
        (lambda: body(regions=["leg"]), "regions must be a dict of Box, .* by name, got \\['leg'\\]"),
        (lambda: body(name=3), "SoftBody: name must be a text, got 3"),
        (lambda: wb.Scene(body()), "bodies must be a list of SoftBody or RigidBody, got a SoftBody; put it in a list"),
        (lambda: scene(bodies=[BOX]), r"bodies\[0\] must be a SoftBody or RigidBody, got a Box"),
        (lambda: scene(gravity=9.81), "gravity must be a list of finite numbers, got 9.81"),
        (lambda: scene(gravity=(0.0, float("nan"))), r"gravity\[1\] must be a finite number, got nan"),
        (lambda: scene(domain=((0.0, 0.0), (1.0, float("inf")))), r"domain\[1\]\[1\] must be a finite number, got inf"),
        (lambda: scene(domain=((0.0,), (1.0, 1.0))), "domain must be lists of one length, got some of 1 and some of 2"),
        (lambda: wb.Joint("j", "revolute", None, "a", axis=1.0), "axis must be a list of finite numbers, got 1.0"),
        (lambda: wb.Joint("j", "revolute", None, "a", lower=float("nan")), "lower must be a list of numbers other than nan, a number other than nan or None, got nan"),
        (lambda: wb.Contact("a", "b", 1e6, friction=float("nan")), "Contact 'a on b': friction must be a finite number, got nan"),
        (lambda: TriangleMesh([[0, 0, 0], [1, 0]], [[0, 1, 2]]), "vertices must be an array of finite numbers"),
        (lambda: TriangleMesh(np.eye(3), [[0.0, 1.5, 2.0]]), r"faces must be whole numbers, got 1.5 at index \(0, 1\)"),
        (lambda: HalfSpace((0.0, 0.0), (1.7e308, 1.7e308)), "normal must be a vector that can be normalised"),
        (lambda: wb.shapes.Sheet.rectangle((0, 0), 1.0, 1e-3, (2, 2)), "rectangle: upper must be a list of 2 finite"),
        (lambda: wb.floor(dim=4), "dim must be 2 or 3, got 4"),
        (lambda: wb.MPM("0.1"), "MPM: dx must be a finite number, got '0.1'"),
        (lambda: wb.MassSpring(0.1, seed=1.5), "seed must be a whole number, got 1.5"),
        (lambda: wb.Checkpoints.every(2.5), "k must be a whole number, got 2.5"),
        (lambda: wb.Simulation(scene(), wb.MPM, 1e-3), r"solver must be an instance such as MPM.*, got the class MPM"),
        (lambda: simulation(scene=body()), "Simulation: scene must be a Scene, got a SoftBody"),
        (lambda: simulation(substeps=2.5), "substeps must be a whole number, got 2.5"),
        (lambda: simulation(worlds=1.5), "worlds must be a whole number, got 1.5"),
        (lambda: simulation(dt=float("nan")), "dt must be a finite number, got nan"),
        (lambda: simulation(device="gpu"), "there is no device 'gpu'; this machine has cpu"),
        (lambda: simulation(dt=1e300, substeps=None), "safe steps of .* more than can be counted; use a shorter dt"),
        (lambda: wb.shapes.load_mesh(3), "load_mesh: path must be a text or Path, got 3"),
    ],
)  # fmt: skip
def test_what_does_not_belong_there(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_numbers_and_lists_of_any_kind_are_taken():
    """Numbers of NumPy and torch, arrays and generators are accepted by their values."""
    a = body(velocity=np.float32([0.5, 1.0]), friction=torch.tensor(0.25), color=(c for c in (1, 0, 0)))
    assert (a.velocity, a.friction, a.color) == ((0.5, 1.0), 0.25, (1.0, 0.0, 0.0))
    assert wb.Material(10_000, incompressibility=2.0) == wb.Material(1e4, incompressibility=2)
    assert isinstance(wb.Material(1e4, incompressibility=2.0).incompressibility, int)
    assert wb.Joint("j", "revolute", None, "a", lower=0, upper=float("inf")).upper == (float("inf"),)


def test_numbers_that_single_precision_has_not():
    for material, words in (
        (
            wb.Material(1e4, 0.4999999999),
            r"'poissons_ratio' must be in \(-1, 0.5\), got 0.5 at index .*float32 rounds",
        ),
        (wb.Material(1e39), r"'youngs_modulus' must be in \(0, inf\) Pa, got inf"),
        (wb.Material(1e4, 0.3, 1e-60), r"'density' must be in \(0, inf\) kg/m\^[23], got 0"),
    ):
        if precision == "float32":
            with pytest.raises(SceneError, match=words):
                simulation(scene=scene(bodies=[body(material=material)]), substeps=None)


def touching(shape):
    """A floor under a body that is to have a billion contact points."""
    bodies, contacts = [wb.RigidBody("r", shape, points=1e9)], [wb.Contact("r", "floor", 1e6)]
    return wb.Articulated().build(wb.Scene(bodies, obstacles=[wb.floor(-1.0)], contacts=contacts))


TOO_LARGE = wb.shapes.Box((0.0, 0.0), (1e5, 1e5))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: simulation(scene=scene(domain=((0.0, 0.0), (1e6, 1e6)))), r"MPM: nodes of the grid: 4e\+14 .* smaller Scene.domain"),
        (lambda: simulation(scene=wb.Scene([body(shape=TOO_LARGE)])), "MPM: particles of a body: .* larger MPM"),
        (lambda: wb.MassSpring(0.05).build(wb.Scene([body(shape=TOO_LARGE)])), "MassSpring: cells of a body"),
        (lambda: wb.MassSpring(0.05, "random").build(wb.Scene([body(shape=TOO_LARGE)])), "MassSpring: boxes about"),
        (lambda: simulation(worlds=10**12), "MPM: worlds: 1e\\+12 of them need .* use fewer"),
        (lambda: wb.meshing.tetrahedra(wb.shapes.Sphere((0, 0, 0), 1e3), 0.01), "meshing: cells of a Sphere: .* larger cells"),
        (lambda: wb.shapes.Sheet.rectangle((0, 0), (1, 1), 1e-3, (10**6, 10**6)), "Sheet.rectangle: cells: 1e\\+12"),
        (lambda: touching(wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.1))), r"RigidBody 'r': points: 1e\+09 of them need"),
        (lambda: touching(wb.shapes.TriangleMesh(*tetrahedron())), r"RigidBody 'r': points: 1e\+09 of them need"),
    ],
)  # fmt: skip
def test_what_does_not_fit_into_memory(build, words, monkeypatch):
    """Refused with the number, the memory it needs and the remedy, before anything is allocated."""
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 1e9)
    with pytest.raises(SceneError, match=words) as error:
        build()
    assert "1 GB are available" in str(error.value)


def test_the_memory_that_is_left_is_known():
    """More than the process has taken is never promised by less than a megabyte."""
    assert 1e6 < memory_limit.available_memory() < 1e15


def test_controls_of_any_kind_are_taken_and_others_refused():
    sim = actuated()
    table = np.linspace(-1.0, 1.0, 3)[:, None]
    end = sim.rollout(table, 3).final.position
    assert torch.equal(end, sim.rollout(torch.as_tensor(table), 3).final.position)
    assert torch.equal(end, sim.rollout(table.tolist(), 3).final.position)
    assert torch.equal(end, sim.rollout(lambda state, time: table[round(time / sim.dt)], 3).final.position)
    for wrong in ("walk", wb.controllers.MLP, lambda state, time: None, 1j * table):
        with pytest.raises(ValueError, match=r"control.* must be (a tensor, an array or numbers|real), got"):
            sim.rollout(wrong, 3)
    with pytest.raises(ValueError, match="rollout: steps must be a whole number, got 2.5"):
        sim.rollout(None, 2.5)


def test_lengths_beyond_floating_point_are_refused():
    """A radius whose square overflows."""
    body = wb.RigidBody("ball", wb.shapes.Capsule((0, 0, 0), (0, 0, 1), 1e200))
    with pytest.raises(wb.SceneError, match="a length or a mass in it is beyond all floating point"):
        wb.Simulation(wb.Scene((body,)), wb.Articulated(), 1e-3)


def test_a_force_that_needs_a_step_says_so():
    """Under projective dynamics without a `contact_interval`; with one it is a reading."""
    body = wb.SoftBody("block", wb.shapes.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), wb.Material(1e5))
    scene = wb.Scene([body], obstacles=[wb.floor()])
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.1), 0.01)
    for name in ("contact_force", "constraint_torque"):
        with pytest.raises(AttributeError, match=rf"no '{name}': .* give ProjectiveDynamics a contact_interval"):
            getattr(sim.sense(sim.state()), name)
    with pytest.raises(AttributeError, match="'ProjectiveReadings' object has no attribute 'force'"):
        _ = sim.sense(sim.state()).force
    solver = wb.ProjectiveDynamics(0.1, contact_interval=0.01)
    measured = wb.Simulation(scene, solver, 0.01)
    assert measured.sense(measured.state()).contact_force.shape == (1, 1, 3)
