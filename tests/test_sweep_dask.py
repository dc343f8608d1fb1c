"""The same sweep on a Dask cluster: same bits, also when a worker is killed, and a sentence when no
scheduler answers.
"""

import os
import signal
import socket
import warnings

import pytest
from sweeping import same_bits, small

from flexphase.sweep import Dask, Local, RunFolder, collect, execute
from flexphase.sweep.executors import ChunkError

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture
def cluster():
    with warnings.catch_warnings():
        # of distributed itself: ports in use, unclosed comms at shutdown
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            yield cluster


@pytest.fixture
def address(cluster):
    return cluster.scheduler_address


def on_local(path, sweep):
    with RunFolder(path, {}) as folder:
        execute([sweep], folder, Local(1))
        return collect(sweep, folder)


@pytest.mark.filterwarnings("ignore")
def test_two_dask_workers_give_the_same_bits(address, tmp_path):
    executor = Dask(address)
    with RunFolder(tmp_path / "dask", {}) as folder:
        execute([small()], folder, executor)
        executor.close()
        same_bits(collect(small(), folder), on_local(tmp_path / "local", small()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_dask_worker_has_its_chunks_run_elsewhere(cluster, address, tmp_path):
    sweep, executor, killed = small(ticks=6000, records=40), Dask(address), []

    def watch(running, finished):
        if len(running) == 2 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with RunFolder(tmp_path / "dask", {}) as folder:
        execute([sweep], folder, executor, watch)
        executor.close()
        assert killed
        same_bits(collect(sweep, folder), on_local(tmp_path / "local", sweep))


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_does_not_see_the_folder_is_named(address, tmp_path, monkeypatch):
    executor = Dask(address)
    monkeypatch.setattr("flexphase.sweep.run.place", lambda folder: folder.path / "chunks")
    with RunFolder(tmp_path / "run", {}) as folder, pytest.raises(ValueError, match="does not see"):
        list(executor.run(['{"folder": "/nowhere/at/all"}']))
    executor.close()
    assert folder.path.exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["closed port", "silent port", "nonsense"])
def test_an_address_that_does_not_answer_is_one_line(kind):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        if kind == "silent port":
            s.listen()
        address = "no such thing" if kind == "nonsense" else f"tcp://127.0.0.1:{s.getsockname()[1]}"
        if kind == "closed port":
            s.close()
        with pytest.raises(ValueError, match="no Dask scheduler answers at") as error:
            Dask(address, timeout=1)
    assert "\n" not in str(error.value)


class Lost:
    """A client whose scheduler is gone: what is submitted waits for ever."""

    status = "connecting"
    key = "a task"

    def run(self, *_, **__):
        return {}

    def submit(self, *_, **__):
        return self

    def done(self):
        return False

    def cancel(self, *_):
        raise distributed.client.ClosedClientError("Client is closed.")


class Deaf(Lost):
    """The same, noticed when the workers are asked."""

    def run(self, *_, **__):
        raise distributed.comm.CommClosedError("in <TCP>: Stream is closed")


@pytest.mark.parametrize("client", [Lost(), Deaf()])
def test_a_scheduler_that_is_lost_early_is_one_line_not_an_endless_wait(client):
    executor = object.__new__(Dask)
    executor.client = client
    with pytest.raises(ChunkError, match=r"the Dask scheduler was lost \(what was done is kept"):
        next(executor.run(['{"folder": "/", "name": "a chunk"}']))
