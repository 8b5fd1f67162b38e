"""Labs of a course: numbers of each student, notebooks for students and graders from one source, and grading.

A lab is one Python file, from which `forms` makes the notebook that students fill in, the one with solutions, and those
that nbgrader and Otter grade. `grade` runs what students hand in. In the notebook itself, `Numbers` gives each student
numbers of their own, and `warpbots.exercises.check` judges answers.
"""

from warpbots.labs.student_numbers import Numbers, WrongName

__all__ = ["Numbers", "WrongName"]
