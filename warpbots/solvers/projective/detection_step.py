"""Collision detection between surfaces in a step: when it runs, and which pairs become contacts."""

import warp as wp

from warpbots.numerics import copy, if_then, launch, real
from warpbots.solvers.projective.contact import (
    body_boxes,
    crossed_edges,
    detection,
    detection_control,
    merge,
    node_contact,
    pairs,
    planes,
    second_attempt,
)
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE
from warpbots.solvers.projective.contact.surface_search import SearchControl
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["Detection"]

_NEAR = 1e-3
"""Most by which a pair that is no contact may end nearer than its clearance [clearances]."""
_THREADS = 1024
"""Number of threads of a world that sort the pairs of a search."""


class Detection:
    """Pairs of all worlds in a step; without contact between bodies nothing runs.

    Attributes:
        begun: Displacements at which the paths to the end of the step begin: 0, but for second attempts.
    """

    def __init__(self, model: ProjectiveModel, x: wp.array, dt: float):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            x: Points at the start of the step [m], shape (worlds * n_points,).
            dt: Length of the step [s].
        """
        matrix, workspace = model.matrices.of(dt), model.workspace
        self._worlds, self._device, self._sizes, self._x = model.worlds, model.device, model.topology.sizes, x
        self._topology, self._progress = matrix.contact, matrix.iteration.progress
        self._poses, self._step = model.frames.solids, wp.float64(dt)
        self._zero, self._contact, self._islands = workspace.zero, workspace.contact, matrix.iteration.islands
        self.begun, self._model = self._zero, model
        if self._sizes.capacity:
            self._pairs, self._search = model.pairs, workspace.contact.search
            self._boxes = workspace.contact.boxes
            self._attempt, self._twice = workspace.contact.attempt, model.skeleton is None and not model.frames.names
            self.begun = self._attempt.u
            self._control = SearchControl()
            for name in SearchControl.vars:
                source = self._attempt if name in second_attempt.SecondAttempt.vars else self._search
                setattr(self._control, name, getattr(source, name))

    def begin(self, where: wp.array) -> None:
        """Remove all contacts of pairs in worlds in which `where` is 1, and request a search there."""
        if self._sizes.capacity:
            search, contacts = self._search, self._contact.contacts
            outputs = [self._pairs, search.check, search.any, search.searches, search.asked, search.rounds]
            outputs += [search.early, search.added, search.near, search.intersection, search.lost]
            launch(detection_control.begin_pairs_kernel, self._worlds, [where], outputs, self._device)
            for corner in (contacts.head, contacts.tail):
                corner.fill_(-1)
            inputs, outputs = [self._sizes.stride, where], [self._islands, self._attempt]
            self._launch(second_attempt.first_attempt_kernel, self._sizes.stride, inputs, outputs)

    def search(self, u: wp.array, tolerance: float) -> None:
        """In worlds that request it, search the paths to the end `u` for pairs whose sides pass through each other.

        Planes may rotate by up to ten times the `tolerance` [mean edges] after their last update, and pairs may end
        nearer than their clearance by the tolerance.
        """
        if self._sizes.capacity:
            if_then(self._search.any, lambda: self._run(u, tolerance))
            copy(self._search.was, self._progress.running)

    def _launch(self, kernel: wp.Kernel, count: int, inputs: list, outputs: list) -> None:
        launch(kernel, (self._worlds, count), inputs, outputs, self._device)

    def stay(self, u: wp.array) -> None:
        """Let paths begin at the end `u` of the step, for an adjoint, on which the path has no influence."""
        if self._sizes.capacity and self._twice:
            copy(self._attempt.u, u)

    def _run(self, u: wp.array, tolerance: float) -> None:
        struct, search, attempt = self._pairs, self._search, self._attempt
        self._update_planes(u, tolerance, shortened=0)
        inputs = [struct, search.check, search.searches, u]
        self._launch(detection_control.keep_path_kernel, struct.vertex.size, inputs, [search.path])
        points = max(self._sizes.points, self._islands.count)
        inputs = [self._sizes.points, self._sizes.stride, self._x, u, search.check, self._islands]
        self._launch(second_attempt.path_kernel, points, inputs, [attempt])
        self._find(attempt.x, attempt.way, real(1.0 - min(tolerance / CLEARANCE, _NEAR)))
        if self._twice:
            self._stop_nodes()
            inputs = [self._sizes.stride, search.check, search.asked, self._islands, self._progress]
            self._launch(second_attempt.follow_kernel, self._sizes.points, inputs, [attempt, u])
            self._update_planes(u, tolerance, shortened=1)
        self._make_contacts()
        self._resolve(u)

    def _stop_nodes(self) -> None:
        """End the moves of second attempts where a node would enter an obstacle."""
        if self._sizes.solid_contacts:
            search, attempt = self._search, self._attempt
            inputs = [self._topology, self._model.obstacles, self._poses, attempt.x, attempt.way]
            inputs += [search.check, search.asked, self._islands, self._contact.contacts]
            self._launch(node_contact.stop_nodes_kernel, self._sizes.solid_contacts, inputs, [attempt.free])

    def _update_planes(self, u: wp.array, tolerance: float, shortened: int) -> None:
        search = self._search
        inputs = [real(10.0 * tolerance), self._x, u, search.check, search.asked, search.rounds]
        inputs += [self._attempt.left, shortened]
        outputs = [self._pairs, search.added, self._islands]
        self._launch(planes.update_planes_kernel, self._sizes.capacity, inputs, outputs)

    def _find(self, x: wp.array, u: wp.array, within: real) -> None:
        """List the pairs whose sides would pass through each other, or end `within` their clearance [clearances].

        Args:
            x: Start of the path of each point [m].
            u: Displacements on these paths.
            within: Fraction of the clearance.
        """
        struct, search = self._pairs, self._search
        self._bound(x, u)
        for tree in self._contact.trees:
            inputs = [struct, tree.corners, x, u, self._islands, search.searches, search.asked]
            self._launch(detection.path_boxes_kernel, tree.corners.shape[0], inputs, [tree.lower, tree.upper])
            tree.bvh.refit()
        faces, edges = self._contact.trees
        outputs = [self._control, search.added, search.near, self._islands, search.hits]
        inputs = [struct, within, x, u, faces.bvh.id, self._boxes]
        self._launch(detection.find_faces_kernel, struct.vertex.size, inputs, outputs)
        inputs = [struct, within, x, u, edges.bvh.id, edges.lower, edges.upper, self._boxes]
        self._launch(detection.find_edges_kernel, struct.edge.size, inputs, outputs)

    def _bound(self, x: wp.array, u: wp.array) -> None:
        """Write the reach of every body; soft bodies alone may touch everywhere."""
        struct, search = self._pairs, self._search
        if struct.movers > struct.soft:
            inputs, outputs = [search.check, struct.bodies], [self._boxes]
            launch(body_boxes.begin_boxes_kernel, self._worlds * struct.bodies, inputs, outputs, self._device)
            inputs = [struct, x, u, self._islands, search.check, search.searches, search.asked]
            self._launch(body_boxes.add_paths_kernel, struct.vertex.size, inputs, outputs)
            self._launch(body_boxes.meet_kernel, struct.bodies, [struct, search.check], outputs)

    def _make_contacts(self) -> None:
        """Make contacts of the listed pairs, in an order that does not depend on threads."""
        search, threads = self._search, min(self._search.hits.room, _THREADS)
        self._launch(merge.order_kernel, threads, [threads], [search.hits])
        outputs = [search.hits, self._pairs, self._contact.contacts, search.added, self._islands, self._progress]
        inputs = [self._topology, search.lost, search.check]
        launch(merge.merge_kernel, self._worlds, inputs, outputs, self._device)
        outputs = [self._pairs, search.added, self._islands]
        self._launch(planes.same_connection_kernel, self._sizes.capacity, [search.check, search.asked], outputs)

    def _resolve(self, u: wp.array) -> None:
        """End a step that has converged, unless there are new contacts or surfaces intersect."""
        struct, search, progress, first = self._pairs, self._search, self._progress, self._topology.solids
        inputs = [struct, self._x, u, self._zero, self._contact.trees[0].bvh.id]
        inputs += [self._boxes, self._islands, search.asked, search.added, progress, search.check]
        self._launch(crossed_edges.find_intersections_kernel, struct.edge.size, inputs, [search.intersection])
        inputs = [self._sizes.capacity, self._sizes.most, self._topology.first + first, struct, search.added]
        outputs = [search.check, search.any, search.searches, search.rounds, search.early]
        outputs += [search.intersection, search.lost, search.outgrown, self._islands, progress]
        launch(detection_control.resolve_kernel, self._worlds, inputs, outputs, self._device)
        inputs = [self._topology, struct, first, self._poses, self._step, progress.running, self._x, u, self._zero]
        self._launch(pairs.evaluate_pairs_kernel, self._sizes.capacity, inputs, [self._contact.contacts])

    def ask(self, u: wp.array, spent: int) -> None:
        """Request a search if a step has just converged to `u`, unless the first search shows that nothing is near.

        A step that has failed with contacts begins again, with `spent` iterations counted as taken. With bones
        or motions that are prescribed it does not: the start of the step is not an admissible point there.
        """
        if self._sizes.capacity:
            search, struct, progress = self._search, self._pairs, self._progress
            inputs = [struct, search.was, progress, u, search.path]
            self._launch(detection_control.stray_kernel, struct.vertex.size, inputs, [search.near])
            outputs = [search.asked, search.check, search.any, search.added, progress]
            inputs = [self._islands, search.was, search.near, search.early]
            launch(detection_control.ask_kernel, self._worlds, inputs, outputs, self._device)
            if self._twice:
                self._begin_again(u, spent)

    def _begin_again(self, u: wp.array, spent: int) -> None:
        search, attempt, stride = self._search, self._attempt, self._sizes.stride
        outputs = [search.asked, search.check, search.any, search.rounds, search.early, search.lost]
        outputs += [search.intersection, self._islands, self._progress, attempt]
        inputs = [spent, self._contact.contacts.pressed]
        launch(second_attempt.begin_again_kernel, self._worlds, inputs, outputs, self._device)

        def clear() -> None:
            inputs = [stride, search.count, self._islands, attempt.begun]
            self._launch(second_attempt.clear_kernel, stride, inputs, [search.kind, search.redundant, u])
            attempt.any.zero_()

        if_then(attempt.any, clear)
