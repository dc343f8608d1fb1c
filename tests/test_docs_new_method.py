"""The skeleton of docs/new_method.md runs as it stands, and learns."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "new_method.md"


def test_the_skeleton_learns_under_every_rule(capsys):
    """The loss before training is |w|^2 = 5.25 on average (closed form: inputs are standard
    normal).
    """
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "skeleton"})
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert float(said["two-term"]) < 1e-3
    assert float(said["isd"]) < 0.5 and float(said["always on"]) < 0.5
