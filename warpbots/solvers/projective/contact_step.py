"""Contacts in the iteration of a step and in its adjoint; without contact nothing runs."""

from collections.abc import Callable

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import copy, if_then, launch, launch_lanes, real
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.projective import wrenches
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact import (
    breaking_away,
    contact_adjoint,
    contact_force_solver,
    contact_lists,
    contacts_without_gradient,
    coulomb_law,
    embedded_obstacles,
    few_contacts,
    merge,
    node_contact,
    pairs,
    sticking_contacts,
)
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.contacts_without_gradient import loosest
from warpbots.solvers.projective.contact.pair_arrays import PairArrays
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.detection_step import Detection
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.guides import GuideArrays
from warpbots.solvers.projective.iterate import compliance
from warpbots.solvers.projective.lost_gradients import note_loss_kernel
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.workspace import StepEnd
from warpbots.solvers.projective.wrenches import Receivers

__all__ = ["ContactStep"]


class ContactStep:
    """Contacts of all worlds in a step: first contacts with solids, then pairs.

    Attributes:
        detection: Collision detection between surfaces.
    """

    def __init__(self, model: ProjectiveModel, skeleton: Skeleton, points: ContactPoints, dt: float):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            skeleton: The bones, which couple contacts with one another.
            points: The points at the start of the step.
            dt: Length of the step [s].
        """
        self._model, self._skeleton, self._points = model, skeleton, points
        self._surfaces = [model.frames.solids, wp.float64(dt)]
        self._workspace, self._arrays, self._device = model.workspace, model.workspace.contact, model.device
        self._sizes, self._matrix = model.topology.sizes, model.matrices.of(dt)
        self._topology, self._x = self._matrix.contact, points.position
        self.detection = Detection(model, points.position, dt)
        self._begun = self.detection.begun

    def _each(self, count: int) -> tuple[int, int]:
        return self._model.worlds, count

    def _all(self, kernel: wp.Kernel, inputs: list, outputs: list, *rows: int) -> None:
        if self._sizes.contacts:
            each = (*self._each(self._sizes.contacts), *rows)
            launch(kernel, each, [self._topology, *inputs], outputs, self._device)

    def _solids(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        if self._sizes.solid_contacts:
            launch(kernel, self._each(self._sizes.solid_contacts), [self._topology, *inputs], outputs, self._device)

    def _pairs(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        if self._sizes.capacity:
            inputs = [self._topology, self._model.pairs, self._sizes.solid_contacts, *inputs]
            launch(kernel, self._each(self._sizes.capacity), inputs, outputs, self._device)

    def begin(self, where: wp.array) -> None:
        """Find closed contacts with obstacles in worlds in which `where` is 1, and request a search for pairs there."""
        if self._sizes.contacts:
            self._matrix.compliance.missing.zero_()
            self._arrays.sticking.ready.zero_()
        if self._sizes.solid_contacts:
            inputs = [self._topology, self._model.obstacles, *self._surfaces, where, self._x, self._points.velocity]
            each, outputs = self._each(self._sizes.contact_points), [self._arrays.contacts]
            launch(node_contact.begin_obstacles_kernel, each, inputs, outputs, self._device)
        self.detection.begin(where)

    def push(self, active: wp.array, z: wp.array) -> None:
        """Add the forces of contacts to the residual."""
        self._points.begin(active, self._workspace.zero, self._workspace.residual)
        self._push(active, z)

    def _push(self, active: wp.array, z: wp.array) -> None:
        self._all(coulomb_law.push_kernel, [active, z], [self._arrays.contacts])
        self._gather(active, self._workspace.residual)

    def _gather(self, active: wp.array, to: wp.array) -> None:
        if self._sizes.contacts:
            inputs, each = [self._topology, active, self._arrays.contacts], self._each(self._sizes.candidates)
            launch(coulomb_law.gather_kernel, each, inputs, [to], self._device)

    def solve_forces(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        """Write the correction of the contact forces, after the correction of displacements."""
        self._evaluate(active, z, f)
        self._respond(active, transposed=False)
        few, sticking = few_contacts.solve_few_kernel, sticking_contacts.solve_sticking_kernel
        many = contact_force_solver.gauss_seidel_kernel
        self._solve((contact_lists.list_kernel, few, sticking, many), active, z, [], f)
        if self._workspace.static_friction:
            inputs = [active, z, f, self._arrays.coupling, self._matrix.rotation, self._matrix.normals]
            inputs.append(self._matrix.iteration.islands)
            outputs = [self._arrays.contacts, self._matrix.iteration.progress]
            self._all(breaking_away.note_changes_kernel, inputs, outputs)

    def follow(self, f: wp.array, move: Callable[[wp.array], None]) -> None:
        """In worlds with active contacts, call `move` again with the corrected forces."""
        self._again(lambda pressed: self._push(pressed, f), move)

    def _again(self, push: Callable[[wp.array], None], move: Callable[[wp.array], None]) -> None:
        if self._sizes.contacts:
            contacts = self._arrays.contacts

            def again() -> None:
                push(contacts.pressed)
                move(contacts.pressed)

            if_then(contacts.any, again)

    def _solve(self, kernels: tuple[wp.Kernel, ...], active: wp.array, z: wp.array, seed: list, f: wp.array) -> None:
        """List the active contacts, and solve for their forces: a few together, many one after the other.

        Between these, many contacts are solved for together where all but a few stick.
        """
        listing, few, sticking, many = kernels
        if not self._sizes.contacts:
            return
        contacts, columns, lanes = self._arrays.contacts, self._matrix.compliance, lanes_of(self._device)
        parts = self._each(contacts.parts)
        contacts.any.zero_()
        if contacts.parts > 1:
            launch(contact_lists.count_kernel, parts, [self._topology, active], [contacts], self._device)
        launch(listing, parts, [self._topology, active, z, *seed], [contacts, f], self._device)
        each = (*self._each(columns.side), lanes)
        inputs = [self._topology, lanes, contacts, self._arrays.sticking.ready]
        launch(contact_force_solver.mutual_kernel, each, inputs, [columns], self._device)
        system, inputs = self._arrays.forces, [self._workspace.scaling, active, z, columns]
        outputs = [self._arrays.coupling, self._matrix.rotation, self._matrix.normals, contacts, f]
        if system.side and not self._workspace.static_friction:  # breaking away is a jump of the law
            launch(few, self._model.worlds, [self._topology, *inputs], [system, *outputs], self._device)
            if 0 < self._arrays.sticking.side <= columns.side and self._matrix.normals.count == 0:
                coupled = [self._arrays.coupling, self._matrix.rotation, contacts]
                inputs_of, outputs_of = [self._topology, *inputs, *coupled], [self._arrays.sticking, system, f]
                launch(sticking, self._model.worlds, inputs_of, outputs_of, self._device)
        inputs.append(system.solved)
        launch(many, self._each(lanes), [self._topology, lanes, *inputs], outputs, self._device, lanes)

    def _evaluate(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        """Write distances and normals of all contacts, and compliances of active contacts."""
        contacts, columns = self._arrays.contacts, self._matrix.compliance
        inputs = [self._model.obstacles, *self._surfaces, active, self._x, self._begun, z, f]
        self._solids(node_contact.evaluate_obstacles_kernel, inputs, [contacts])
        self._pairs(pairs.evaluate_pairs_kernel, [*self._surfaces, active, self._x, z, f], [contacts])
        if self._sizes.contacts:
            columns.count.zero_()
            self._all(coulomb_law.need_kernel, [active, contacts], [columns])
            launch(compliance.place_kernel, 1, [], [columns], self._device)
            inputs, each = [self._topology.row, self._matrix.factor.arrays], (columns.threads, columns.lanes)
            launch(compliance.comply_kernel, each, inputs, [columns], self._device, columns.lanes)

    def _respond(self, active: wp.array, transposed: bool) -> None:
        """Write the response of contacts to their forces, by soft bodies, joints, free rotations and free normals."""
        if self._sizes.contacts:
            contacts, coupling = self._arrays.contacts, self._arrays.coupling
            self._skeleton.couple(active, self._topology, contacts, coupling, transposed)
            inputs = [self._matrix.compliance, coupling, self._matrix.rotation, self._matrix.normals]
            inputs += [self._workspace.scaling, active]
            self._all(coulomb_law.own_kernel, inputs, [contacts])

    def forbid_embedded(self, where: wp.array, u: wp.array) -> None:
        """Fail the steps in worlds with `where` 1 that end at `u` with an obstacle deep inside a face."""
        if self._model.sharp:
            sizes, embedded = self._sizes, self._arrays.embedded
            faces, converged = embedded.face.size, self._matrix.iteration.progress.converged
            islands = self._model.matrices.islands
            poses, h = self._surfaces
            inputs = [self._model.obstacles, poses, sizes.points, sizes.stride, embedded.face, h, self._x]
            inputs += [self._begun, u, where, islands, converged]
            outputs = [embedded.depth, embedded.solid]
            launch(embedded_obstacles.find_embedded_kernel, self._each(faces), inputs, outputs, self._device)
            inputs = [embedded.depth, faces, embedded.face, islands]
            launch(embedded_obstacles.fail_embedded_kernel, self._each(faces), inputs, [converged], self._device)

    def forbid_shortage(self) -> None:
        """Fail the step, or the adjoint, if there is no room for the compliances of all nodes in contact."""
        if self._sizes.contacts:
            inputs, outputs = [self._matrix.compliance], [self._matrix.iteration.progress]
            launch(compliance.forbid_kernel, self._matrix.iteration.units, inputs, outputs, self._device)

    def keep(self, end: StepEnd, z: wp.array) -> None:
        """Store displacements, forces and pairs in `end` for the adjoint, but not for components whose step failed."""
        copy(end.z, z)
        for kept, array in end.pairs(self._arrays.search):
            copy(kept, array)
        if self._workspace.static_friction:
            copy(end.changes, self._arrays.contacts.changes)
        sizes, islands = self._sizes, self._model.matrices.islands
        inputs, outputs = [sizes.stride, sizes.capacity, islands], [end.z, end.kind]
        launch(nodes.drop_kernel, self._each(sizes.stride), inputs, outputs, self._device)

    def recall(self, end: StepEnd | None, u: wp.array) -> None:
        """Evaluate the contacts at the end `u` of a step."""
        if self._sizes.contacts:
            self.begin(self._workspace.everywhere)
            self.detection.stay(u)
            for kept, array in end.pairs(self._arrays.search):
                copy(array, kept)
            if self._workspace.static_friction:
                copy(self._arrays.contacts.changes, end.changes)
            if self._sizes.capacity:
                inputs, outputs = (
                    [self._topology, self._model.pairs],
                    [self._arrays.contacts, self._model.matrices.islands],
                )
                launch(merge.link_kernel, self._model.worlds, inputs, outputs, self._device)
            self._evaluate(self._workspace.everywhere, u, self._workspace.zero)

    def differentiate(self, u: wp.array) -> None:
        """Write the derivatives of the contact law at the end `u` of a step."""
        self._respond(self._workspace.everywhere, transposed=True)
        self._pairs(
            contacts_without_gradient.end_planes_kernel, [self._surfaces[1], self._x, u], [self._arrays.contacts]
        )
        inputs = [self._model.pairs, *self._surfaces, self._x, u]
        self._all(contact_adjoint.differentiate_contacts_kernel, inputs, [self._arrays.contacts], 3)

    def refuse_detached(self, u: wp.array, tolerance: float) -> None:
        """Mark the adjoint as not converged in worlds in which a contact at the end `u` has no gradient.

        Args:
            u: Displacements and forces at the end.
            tolerance: Tolerance of the step [mean edges].
        """
        inputs = [real(loosest(tolerance)), u, self._arrays.contacts]
        self._pairs(contacts_without_gradient.detached_kernel, inputs, [self._matrix.iteration.progress])

    def note_loss(self, u: wp.array, h: float, whole: bool, tolerance: float) -> None:
        """Record why the adjoint of a step of length `h`, a `whole` one or a shorter one, has no result.

        Args:
            u: Displacements and forces at the end.
            h: Length of the step [s].
            whole: Whether it is a whole step.
            tolerance: Tolerance of the step [mean edges].
        """
        sizes, it = self._sizes, self._matrix.iteration
        pairs = self._model.pairs if sizes.capacity else PairArrays()
        contacts = self._arrays.contacts if sizes.contacts else ContactArrays()
        missing = self._matrix.compliance.missing if sizes.contacts else None
        inputs = [self._topology or ContactTopology(), pairs, wp.float64(h), int(whole)]
        inputs += [real(loosest(tolerance)), self._x, u]
        inputs += [it.islands, it.progress, missing, contacts]
        launch(note_loss_kernel, self._model.worlds, inputs, [self._workspace.loss], self._device)

    def pull(self, active: wp.array, u: wp.array, z: wp.array) -> None:
        """Add the contribution of contacts to the residual of the adjoint `z` at the end `u`."""
        self._points.begin(active, self._workspace.seed, self._workspace.residual)
        self._pull(active, u, z, works=True)

    def _pull(self, active: wp.array, u: wp.array, z: wp.array, works: bool) -> None:
        inputs = [self._model.pairs, *self._surfaces, active, self._x, u, z, int(works)]
        self._all(contact_adjoint.pull_contacts_kernel, inputs, [self._arrays.contacts])
        self._gather(active, self._workspace.residual)

    def solve_adjoint_forces(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        """Write the correction of the adjoint forces, after the correction of adjoint displacements."""
        few, sticking = few_contacts.adj_solve_few_kernel, sticking_contacts.adj_solve_sticking_kernel
        many = contact_force_solver.adj_gauss_seidel_kernel
        self._solve((contact_lists.adj_list_kernel, few, sticking, many), active, z, [self._workspace.seed], f)

    def follow_adjoint(self, u: wp.array, f: wp.array, move: Callable[[wp.array], None]) -> None:
        """Like `follow`, for the adjoint at the end `u`.

        The work of forces is left to the next iteration: `f` moves bodies as if no contact held them, much too far.
        """
        self._again(lambda pressed: self._pull(pressed, u, f, works=False), move)

    def measure(self, receivers: Receivers, guides: GuideArrays, u: wp.array) -> None:
        """Write the wrenches on `receivers` at the end `u` of a step, with the forces of held nodes."""
        inputs = [self._topology or ContactTopology(), guides, self._sizes.contacts, self._x, u, self._arrays.contacts]
        each, lanes = self._each(receivers.count), lanes_of(self._device)
        launch_lanes(wrenches.wrench_kernel, each, lanes, inputs, [receivers], self._device)

    def seed_wrenches(self, receivers: Receivers, guides: GuideArrays, u: wp.array) -> None:
        """Add the gradients of wrenches with respect to contact forces and displacements to the seed of the adjoint."""
        seed = self._workspace.seed
        inputs = [self._model.pairs, self._surfaces[0], receivers, guides, self._surfaces[1], self._x, u]
        self._all(wrenches.adj_contact_wrench_kernel, inputs, [self._arrays.contacts, seed, None, None])
        self._gather(self._workspace.everywhere, seed)

    def adj_wrenches(self, receivers: Receivers, guides: GuideArrays, u: wp.array) -> None:
        """Add the gradients of wrenches with respect to points at the start, and to displacements that are given."""
        inputs = [self._model.pairs, self._surfaces[0], receivers, guides, self._surfaces[1], self._x, u]
        outputs = [self._arrays.contacts, None, self._x.grad, u.grad]
        self._all(wrenches.adj_contact_wrench_kernel, inputs, outputs)

    def adjoint(self, u: wp.array, z: wp.array) -> None:
        """Add the gradients with respect to the start of the step, displacements, friction and poses."""
        inputs = [self._model.pairs, *self._surfaces, self._x, u, self._arrays.contacts, z]
        frictions = self._model.body_friction, self._model.friction, self._model.contact_friction
        outputs = [self._x.grad, u.grad, *map(_flat_gradient, frictions)]
        outputs.append(_gradients(self._model.frames.solids))
        self._all(contact_adjoint.adj_contacts_kernel, inputs, outputs)


def _gradients(poses: MovingPoses) -> MovingPoses:
    """The gradients with respect to `poses`; without arrays if nothing moves."""
    gradients = MovingPoses()
    for name in MovingPoses.vars:
        if getattr(poses, name).grad is not None:
            setattr(gradients, name, getattr(poses, name).grad)
    return gradients


def _flat_gradient(array: wp.array) -> wp.array | None:
    return None if array.grad is None else array.grad.flatten()
