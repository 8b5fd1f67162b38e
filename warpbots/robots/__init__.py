"""Robots in URDF and MJCF files, read, written and replayed through MuJoCo (``pip install "warpbots[robots]"``)."""

from warpbots.robots.loader import load_robot
from warpbots.robots.mujoco_replay import Replay, replay_in_mujoco
from warpbots.robots.pose_holding import hold_pose, set_down
from warpbots.robots.writer import save_robot

__all__ = ["Replay", "hold_pose", "load_robot", "replay_in_mujoco", "save_robot", "set_down"]
