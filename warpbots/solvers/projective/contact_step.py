"""Contacts of a step: what its iteration and its adjoint do with them, which is nothing where there are none."""

from collections.abc import Callable

import warp as wp

from warpbots.numerics import copy, if_then, launch, real
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact import (
    coulomb,
    crossed_edges,
    detached,
    detection,
    embedded_obstacles,
    gauss_seidel,
    merge,
    node_contact,
    pairs,
)
from warpbots.solvers.projective.contact_points import Points
from warpbots.solvers.projective.iterate import compliance
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.workspace import End

__all__ = ["Contact"]

_CLOSED = 1e-3
"""Distance below which a node is on an obstacle when a step begins [mean edges]."""
_NEAR = 1.0
"""Distance below which an obstacle is near to a node [mean edges]."""
_THREADS = 1024
"""Threads of a world that put in order what a search has found."""


class Contact:
    """Contacts of all worlds in a step: first those of points with solids, then pairs."""

    def __init__(self, model: ProjectiveModel, skeleton: Skeleton, points: Points, dt: float):
        """Nothing runs yet.

        Args:
            model: What touches.
            skeleton: Its bones, through which contacts move one another.
            points: What touches, when the step begins.
            dt: Length of the step [s].
        """
        scratch = model.scratch
        self._model, self._points, self._h = model, points, real(dt)
        self._x, self._v = points.position, points.velocity
        self._scratch, self._device = scratch, model.device
        self._skeleton = skeleton
        self._matrix = scratch.matrix(dt)
        self._of_solids, self._of_pairs = scratch.touchable * scratch.solids, scratch.capacity
        self._touch = scratch.touch(dt) if scratch.contacts else None

    def _each(self, count: int) -> tuple[int, int]:
        return self._model.worlds, count

    def _all(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        if self._scratch.contacts:
            launch(kernel, self._each(self._scratch.contacts), [self._touch, *inputs], outputs, self._device)

    def _solids(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        if self._of_solids:
            launch(kernel, self._each(self._of_solids), [self._touch, *inputs], outputs, self._device)

    def _pairs(self, kernel: wp.Kernel, inputs: list, outputs: list, *rows: int) -> None:
        if self._of_pairs:
            inputs = [self._touch, self._model.pairs, self._of_solids, *inputs]
            launch(kernel, (*self._each(self._of_pairs), *rows), inputs, outputs, self._device)

    def begin(self) -> None:
        """Which contacts with obstacles are closed; pairs have to be searched."""
        scratch, edge, search = self._scratch, self._model.matter.edge, self._scratch.search
        if scratch.contacts:
            self._matrix.compliance.lacking.zero_()
        if self._of_solids:
            inputs = [
                self._touch, self._model.obstacles, real(_CLOSED * edge), real(_NEAR * edge), self._h, self._x, self._v
            ]  # fmt: skip
            each = self._each(scratch.touchable)
            launch(node_contact.begin_obstacles_kernel, each, inputs, [scratch.meeting], self._device)
        if self._of_pairs:
            outputs = [self._model.pairs, search.check, search.any, search.rounds, search.found, search.near]
            outputs += [search.crossing, search.lost]
            launch(pairs.begin_pairs_kernel, self._model.worlds, [], outputs, self._device)
            for corner in (scratch.meeting.head, scratch.meeting.tail):
                corner.fill_(-1)

    def search(self, u: wp.array, tolerance: float) -> None:
        """Where it is asked for, search the way to the end `u` for pairs that would pass through one another.

        Planes may have turned by ten times the `tolerance` [1] since they were last looked at.
        """
        if self._of_pairs:
            if_then(self._scratch.search.any, lambda: self._search(u, real(10.0 * tolerance)))
            copy(self._scratch.search.was, self._matrix.iteration.progress.active)

    def _search(self, u: wp.array, turned: real) -> None:
        surface, search, struct = self._scratch.surface, self._scratch.search, self._model.pairs
        progress = self._matrix.iteration.progress
        inputs = [struct, turned, search.check, search.rounds, progress, self._x, u]
        launch(pairs.turn_kernel, self._each(self._of_pairs), inputs, [search.found], self._device)
        vertices = self._each(struct.vertex.size)
        launch(pairs.aim_kernel, vertices, [struct, search.check, search.rounds, u], [search.aim], self._device)
        for tree, corners, boxes in surface.trees:
            inputs = [struct, search.rounds, corners, self._x, u]
            launch(detection.way_kernel, self._each(corners.shape[0]), inputs, list(boxes), self._device)
            tree.refit()
        faces, edges = surface.trees
        hits, found = search.hits, [search.found, search.near, search.hits]
        inputs = [faces[0].id, search.check, search.rounds, search.lost, self._x, u, struct]
        launch(detection.find_faces_kernel, vertices, inputs, found, self._device)
        inputs = [edges[0].id, *edges[2], search.check, search.rounds, search.lost, self._x, u, struct]
        launch(detection.find_edges_kernel, self._each(struct.edge.size), inputs, found, self._device)
        threads = min(hits.room, _THREADS)
        launch(merge.order_kernel, self._each(threads), [threads], [hits], self._device)
        inputs, outputs = [self._touch, search.lost, search.check], [hits, struct, self._scratch.meeting, search.found]
        launch(merge.merge_kernel, self._model.worlds, inputs, outputs, self._device)
        inputs = [faces[0].id, struct, search.found, progress, search.check, self._x, u, self._scratch.nowhere]
        launch(
            crossed_edges.find_crossings_kernel, self._each(struct.edge.size), inputs, [search.crossing], self._device
        )
        inputs = [self._of_pairs, self._touch.first + self._of_solids, struct, search.found]
        outputs = [search.check, search.any, search.rounds, search.crossing, search.lost, progress]
        launch(pairs.resolve_kernel, self._model.worlds, inputs, outputs, self._device)
        self._pairs(
            pairs.meet_pairs_kernel, [progress.active, self._x, u, self._scratch.nowhere], [self._scratch.meeting]
        )

    def ask(self, u: wp.array) -> None:
        """Ask for a search where a step has just ended at `u`, unless the first one says that nothing is near there."""
        if self._of_pairs:
            search, struct, progress = self._scratch.search, self._model.pairs, self._matrix.iteration.progress
            inputs = [struct, search.was, progress, u, search.aim]
            launch(pairs.stray_kernel, self._each(struct.vertex.size), inputs, [search.near], self._device)
            outputs = [search.check, search.any, search.found, progress]
            launch(pairs.ask_kernel, self._model.worlds, [search.was, search.near], outputs, self._device)

    def push(self, active: wp.array, z: wp.array) -> None:
        """Add the forces of contacts to the imbalance of forces."""
        self._points.bare(active, self._scratch.lacking)
        self._push(active, z)

    def _push(self, active: wp.array, z: wp.array) -> None:
        self._all(coulomb.push_kernel, [active, z], [self._scratch.meeting])
        self._gather(active)

    def _gather(self, active: wp.array) -> None:
        if self._scratch.contacts:
            inputs, each = [self._touch, active, self._scratch.meeting], self._each(len(self._scratch.touching))
            launch(coulomb.gather_kernel, each, inputs, [self._scratch.lacking], self._device)

    def sweep(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        """Write the correction of the forces after that of displacements."""
        self._meet(active, z, f)
        self._answer(active, transposed=False)
        self._sweep(gauss_seidel.list_kernel, gauss_seidel.sweep_kernel, active, z, f)

    def follow(self, f: wp.array, move: Callable[[wp.array], None]) -> None:
        """Where contacts count, `move` again with the forces as they have just been corrected."""
        self._again(lambda pressed: self._push(pressed, f), move)

    def _again(self, push: Callable[[wp.array], None], move: Callable[[wp.array], None]) -> None:
        if self._scratch.contacts:
            meeting = self._scratch.meeting

            def again() -> None:
                push(meeting.pressed)
                move(meeting.pressed)

            if_then(meeting.any, again)

    def _sweep(
        self, listing: wp.Kernel, sweeping: wp.Kernel, active: wp.array, z: wp.array, f: wp.array
    ) -> None:  # fmt: skip
        if not self._scratch.contacts:
            return
        meeting, columns, lanes = self._scratch.meeting, self._matrix.compliance, lanes_of(self._device)
        meeting.any.zero_()
        if meeting.parts > 1:
            launch(gauss_seidel.count_kernel, self._each(meeting.parts), [self._touch, active], [meeting], self._device)
        launch(listing, self._each(meeting.parts), [self._touch, active, z], [meeting, f], self._device)
        each = (*self._each(columns.side), lanes)
        launch(gauss_seidel.mutual_kernel, each, [self._touch, lanes, meeting], [columns], self._device)
        inputs = [self._touch, lanes, self._scratch.scaling, active, z, columns]
        outputs = [self._scratch.reach, self._matrix.turning, meeting, f]
        launch(sweeping, self._each(lanes), inputs, outputs, self._device, lanes)

    def _meet(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        meeting = self._scratch.meeting
        inputs = [self._model.obstacles, active, self._x, z, f]
        self._solids(node_contact.meet_obstacles_kernel, inputs, [meeting])
        self._pairs(pairs.meet_pairs_kernel, [active, self._x, z, f], [meeting])
        if self._scratch.contacts:
            columns = self._matrix.compliance
            columns.count.zero_()
            self._all(coulomb.need_kernel, [active, meeting], [columns])
            launch(compliance.place_kernel, 1, [], [columns], self._device)
            inputs = [self._touch.row, self._matrix.factor.arrays]
            each = columns.threads, columns.lanes
            launch(compliance.comply_kernel, each, inputs, [columns], self._device, columns.lanes)

    def _answer(self, active: wp.array, transposed: bool) -> None:
        """How far contacts move, through the flesh and through joints."""
        if self._scratch.contacts:
            meeting, reach = self._scratch.meeting, self._scratch.reach
            self._skeleton.reach(active, self._touch, meeting, transposed)
            inputs = [self._matrix.compliance, reach, self._matrix.turning, self._scratch.scaling, active]
            self._all(coulomb.own_kernel, inputs, [meeting])

    def forbid_sinking(self, u: wp.array) -> None:
        """Fail a step that ends at `u` with an obstacle deep inside of a face."""
        if self._model.sharp:
            scratch, edge, sunk = self._scratch, self._model.matter.edge, self._scratch.sunk
            faces, found = sunk.face.size, self._matrix.iteration.progress.found
            inputs = [self._model.obstacles, scratch.points, scratch.stride, real(edge), found, sunk.face, self._x, u]
            launch(
                embedded_obstacles.find_sinking_kernel,
                self._each(faces),
                inputs,
                [sunk.depth, sunk.solid],
                self._device,
            )
            launch(
                embedded_obstacles.fail_sinking_kernel, self._each(faces), [sunk.depth, faces], [found], self._device
            )

    def forbid_shortage(self) -> None:
        """Fail a step, or an adjoint, that had no room for how all nodes move that touch."""
        if self._scratch.contacts:
            progress = self._matrix.iteration.progress
            inputs = [self._matrix.compliance]
            launch(compliance.forbid_kernel, self._model.worlds, inputs, [progress], self._device)

    def keep(self, end: End, z: wp.array) -> None:
        """Keep displacements, forces and pairs for the adjoint."""
        copy(end.z, z)
        for kept, array in end.pairs(self._scratch):
            copy(kept, array)

    def recall(self, end: End | None, u: wp.array) -> None:
        """Contacts at the end `u` of a step."""
        if self._scratch.contacts:
            self.begin()
            for kept, array in end.pairs(self._scratch):
                copy(array, kept)
            if self._of_pairs:
                inputs = [self._touch, self._model.pairs]
                launch(merge.link_kernel, self._model.worlds, inputs, [self._scratch.meeting], self._device)
            self._meet(self._scratch.everywhere, u, self._scratch.nowhere)

    def differentiate(self, u: wp.array) -> None:
        """Derivatives of the law at the end `u` of a step."""
        meeting = self._scratch.meeting
        self._answer(self._scratch.everywhere, transposed=True)
        self._solids(node_contact.differentiate_obstacles_kernel, [u], [meeting])
        self._pairs(pairs.differentiate_pairs_kernel, [self._x, u], [meeting], 3)

    def refuse_loose(self, u: wp.array) -> None:
        """Take back that the adjoint was found where no gradient goes through a contact at the end `u`."""
        outputs = [self._matrix.iteration.progress]
        self._pairs(detached.loose_kernel, [self._x, u, self._scratch.meeting], outputs)

    def pull(self, active: wp.array, u: wp.array, z: wp.array) -> None:
        """Add what contacts contribute to the imbalance of the adjoint `z` at the end `u`."""
        self._points.bare(active, self._scratch.lacking)
        self._pull(active, u, z)

    def _pull(self, active: wp.array, u: wp.array, z: wp.array) -> None:
        meeting = self._scratch.meeting
        self._solids(node_contact.pull_obstacles_kernel, [active, z], [meeting])
        self._pairs(pairs.pull_pairs_kernel, [active, self._x, u, z], [meeting])
        self._gather(active)

    def sweep_adjoint(self, active: wp.array, z: wp.array, f: wp.array) -> None:
        """Write the correction of the adjoint forces after that of adjoint displacements."""
        self._sweep(gauss_seidel.adj_list_kernel, gauss_seidel.adj_sweep_kernel, active, z, f)

    def follow_adjoint(self, u: wp.array, f: wp.array, move: Callable[[wp.array], None]) -> None:
        """`follow` for the adjoint at the end `u`."""
        self._again(lambda pressed: self._pull(pressed, u, f), move)

    def adjoint(self, u: wp.array, z: wp.array) -> None:
        """Gradients to the start of the step, to friction, and to displacements of fixed nodes."""
        meeting, x_adj = self._scratch.meeting, self._x.grad
        inputs = [self._model.obstacles, u, meeting, z]
        self._solids(node_contact.adj_obstacles_kernel, inputs, [x_adj, u.grad, _flat_gradient(self._model.friction)])
        outputs = [x_adj, u.grad, _flat_gradient(self._model.body_friction)]
        self._pairs(pairs.adj_pairs_kernel, [self._x, u, meeting, z], outputs)


def _flat_gradient(array: wp.array) -> wp.array | None:
    return None if array.grad is None else array.grad.flatten()
