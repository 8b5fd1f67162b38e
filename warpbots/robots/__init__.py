"""Robots in URDF and MJCF files: reads, writes and replays them with MuJoCo (``pip install "warpbots[robots]"``)."""

from typing import TYPE_CHECKING

from warpbots.renamed import refuse_former
from warpbots.robots.loader import load
from warpbots.robots.mujoco_replay import MujocoReplay, replay_in_mujoco
from warpbots.robots.pose_holding import hold_pose, set_down
from warpbots.robots.writer import save

__all__ = ["MujocoReplay", "hold_pose", "load", "replay_in_mujoco", "save", "set_down"]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
