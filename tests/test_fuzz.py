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
    """A case may say how it ends, where an exit code alone tells too little."""
    case = json.loads(path.read_text())
    end = server[0].run(case)
    assert target.fault(case, end) is None, end
    assert end["code"] == case.get("code", end["code"]) and case.get("says", "") in end["err"], end


@pytest.mark.filterwarnings("ignore:Duplicate name")  # zipfile, of forged archives
def test_fresh_files(server):
    rng = random.Random(0)
    for _ in range(60):
        case = cases.file_case(rng, server[1])
        end = server[0].run(case)
        assert target.fault(case, end) is None, (case["words"], end)


def test_what_is_a_fault():
    """The judge itself."""
    fine = {"code": 2, "err": "flexphase: no.\n", "written": [], "changed": []}
    case = {"words": ["plot", "x"], "files": {}}
    assert target.fault(case, fine) is None
    for change in ({"code": 1}, {"code": -11}, {"err": "a\nb\n"}, {"err": ""}, {"written": ["y"]}):
        assert target.fault(case, fine | change)
    assert target.fault(case, fine | {"code": 0, "err": "Traceback"})
    for code in (0, 2):
        for how in ("written", "changed"):
            assert target.fault(case, fine | {"code": code, how: ["y"]}) == "wrote y"
    told = {"words": ["plot", "x", "--out", "y.png", "--table", "t.csv"], "files": {}}
    for name in ("y.png", "y.npy", "t.csv"):
        assert target.fault(told, fine | {"code": 0, "written": [name]}) is None
    assert target.fault(told, fine | {"code": 0, "written": ["y"]})
    ours = fine | {"code": 0, "written": ["run/samples.png"], "changed": ["run/samples.npy"]}
    assert target.fault(case, ours) == "wrote run/samples.npy"
    assert target.fault({"words": ["sample", "run", "--force"]}, ours) is None


def test_a_file_that_is_harmed_is_seen(server, monkeypatch):
    """In the folder of the case, and beside it."""
    folder, seeds = server[0].folder, server[0].folder / "seeds"
    (folder / "beside").write_text("whole")

    def harmful(_):
        for path in ("mine.txt", "run/run.json", "../beside"):
            Path(path).write_text("harmed")
        Path("x.npy").unlink()
        return 0

    monkeypatch.chdir(folder)
    monkeypatch.setattr("flexphase.cli.main", harmful)
    end = target.ends({"words": ["plot"], "files": {}}, folder, seeds)
    (folder / "beside").unlink()
    assert end["written"] == ["mine.txt"]
    assert end["changed"] == ["../beside", "run/run.json", "x.npy"]
