"""Scalar types, matrix functions, kernel launches and the tape: the basis of all solvers."""

from warpbots.numerics.devices import native_messages, warp_device
from warpbots.numerics.gradient_copies import Copies
from warpbots.numerics.kinks import ROUNDING, positive_part
from warpbots.numerics.lanes import largest_of_lanes, sum_of_lanes
from warpbots.numerics.launch import (
    Launch,
    clear_gradients,
    dividing,
    if_then,
    launch,
    launch_adjoint,
    launch_adjoints,
    launch_all,
    launch_lanes,
    launch_own_adjoint,
    launch_slices,
    load,
    preparing,
    rarely,
    repeat,
    shared,
    struct_of,
    while_loop,
    without_rare_bodies,
)
from warpbots.numerics.rotation import cofactor, cofactor_differential, rotation, rotation_differential
from warpbots.numerics.scalars import NODE, index_vector, matrix, precision, real, real_numpy, vector
from warpbots.numerics.signatures import wrong_arguments
from warpbots.numerics.slices import CHUNKS, Edges, Slice, Slices, Targets, chunk_length, within
from warpbots.numerics.subnormals import mode_of_thread, without_subnormals
from warpbots.numerics.symmetric import eigen, exp_differential, exp_symmetric, log_differential, log_symmetric
from warpbots.numerics.tape import copy, record, recording
from warpbots.numerics.threads import parallel

__all__ = [
    "CHUNKS",
    "NODE",
    "ROUNDING",
    "Copies",
    "Edges",
    "Launch",
    "Targets",
    "Slice",
    "Slices",
    "chunk_length",
    "clear_gradients",
    "cofactor",
    "cofactor_differential",
    "copy",
    "dividing",
    "eigen",
    "exp_differential",
    "exp_symmetric",
    "if_then",
    "index_vector",
    "largest_of_lanes",
    "launch",
    "launch_adjoint",
    "launch_adjoints",
    "launch_all",
    "launch_lanes",
    "launch_own_adjoint",
    "launch_slices",
    "load",
    "log_differential",
    "log_symmetric",
    "matrix",
    "mode_of_thread",
    "native_messages",
    "parallel",
    "positive_part",
    "precision",
    "preparing",
    "rarely",
    "real",
    "real_numpy",
    "record",
    "recording",
    "repeat",
    "rotation",
    "rotation_differential",
    "shared",
    "without_rare_bodies",
    "without_subnormals",
    "struct_of",
    "sum_of_lanes",
    "vector",
    "warp_device",
    "while_loop",
    "within",
    "wrong_arguments",
]
