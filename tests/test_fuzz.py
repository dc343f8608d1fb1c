"""Everything that ever ended badly under `make fuzz` ends well now; and a few fresh cases."""

import json
import random
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"
sys.path.insert(0, str(FUZZ))
import cases  # noqa: E402
import fuzz  # noqa: E402
import target  # noqa: E402

CORPUS = sorted((FUZZ / "corpus").glob("*.json"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    seeds = fuzz.seeds_in(folder / "seeds")
    served = fuzz.Target(folder)
    yield served, seeds
    served.close()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus(server, path):
    case = json.loads(path.read_text())
    end = server[0].run(case)
    assert target.fault(case, end) is None, end


@pytest.mark.filterwarnings("ignore:Duplicate name")  # zipfile, of forged archives
def test_fresh_files(server):
    rng = random.Random(0)
    for _ in range(60):
        case = cases.file_case(rng, server[1])
        end = server[0].run(case)
        assert target.fault(case, end) is None, (case["words"], end)


def test_what_is_a_fault():
    """The judge itself."""
    fine = {"code": 2, "err": "flexphase: no.\n", "written": []}
    case = {"words": ["plot", "x"], "files": {}}
    assert target.fault(case, fine) is None
    for change in ({"code": 1}, {"code": -11}, {"err": "a\nb\n"}, {"err": ""}, {"written": ["y"]}):
        assert target.fault(case, fine | change)
    assert target.fault(case, fine | {"code": 0, "err": "Traceback"})
