"""Recorded phases: the table comes back tick by tick, and bad tables are refused in a sentence."""

import datetime
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flexphase as fp
from flexphase.phases import tape

TABLE = {
    "onset": [10.0, 12.0, 13.5, 20.0],
    "duration": [2.0, 1.0, 0.5, 1.0],
    "type": ["wake", "sleep", "wake", "sleep"],
}
SIGNS = {"wake": 1, "sleep": -1}


def by_hand(table, rate):
    """The sign of every tick, painted row by row; what no row covers is 0."""
    start = min(table["onset"])
    ends = [o + d for o, d in zip(table["onset"], table["duration"], strict=True)]
    painted = np.zeros(round((max(ends) - start) * rate))
    for onset, end, kind in zip(table["onset"], ends, table["type"], strict=True):
        painted[round((onset - start) * rate) : round((end - start) * rate)] = SIGNS[kind]
    return painted


def tick_by_tick(process, phases, key=0):
    told = tape(process, jax.random.key(key), phases)
    return np.repeat(np.asarray(told.sign), np.asarray(told.ticks))


rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 5), st.sampled_from(sorted(SIGNS))),
    min_size=2,
    max_size=12,
).filter(lambda rows: {kind for _, _, kind in rows} == set(SIGNS))


@given(rows, st.sampled_from([1, 2, 10]), st.floats(-100, 100))
@settings(max_examples=8)  # each compiles
def test_a_record_is_its_table_tick_by_tick(rows, rate, begin):
    """Against a table painted by hand: gaps are ticks of sign 0, and it begins again."""
    gaps, durations, kinds = zip(*rows, strict=True)
    ends = np.cumsum(np.add(gaps, durations))
    onset = (round(begin) + ends - durations).tolist()
    table = {"onset": onset, "duration": list(durations), "type": list(kinds)}
    process, painted = fp.Recorded(table, rate=rate), by_hand(table, rate)
    once = len(process.sign)
    np.testing.assert_array_equal(tick_by_tick(process, once), painted)
    np.testing.assert_array_equal(tick_by_tick(process, 3 * once), np.tile(painted, 3))
    signed = [SIGNS[kind] for kind in kinds]
    assert float(process.b) == pytest.approx(np.mean([s > 0 for s in signed]))
    assert process.rests == bool((painted == 0).any())
    assert float(process.mean_length) == pytest.approx(len(painted) / once)


def test_weights_of_a_record_add_up_to_both_terms():
    """Over one pass the weights of always-on learning are +n and -n, those of ISD too, where n is
    the number of phases with a sign: eq. 1, phase for phase.
    """
    process = fp.Recorded(TABLE, rate=2)
    for estimator in (fp.always_on, fp.estimators.isd):
        ticks = list(fp.schedule((process, estimator), phases=len(process.sign)))
        for sign in (1, -1):
            total = sum(t.weight for t in ticks if t.sign == sign)
            assert total == pytest.approx(sign * 4)
        assert all(t.weight == 0 and not t.apply for t in ticks if t.sign == 0)


def test_columns_and_words_are_options():
    names: Any = {"onset": "t0", "duration": "lasts", "type": "what"}
    words = {"wake": "Saccade", "sleep": "FIX "}
    table = pd.DataFrame({names[name]: column for name, column in TABLE.items()})
    table["what"] = [words[kind] for kind in table["what"]]
    process = fp.Recorded(table, rate=2, **names, positive="saccade", negative=["fix", "blink"])
    np.testing.assert_array_equal(tick_by_tick(process, 6), by_hand(TABLE, 2))
    ends = table.assign(until=table["t0"] + table["lasts"]).drop(columns="lasts")
    names.pop("duration")
    other = fp.Recorded(ends, rate=2, **names, offset="until", positive="saccade", negative="fix")
    np.testing.assert_array_equal(other.ticks, process.ticks)


@pytest.mark.parametrize(
    ("words", "types", "signs"),
    [
        ({"negative": "Wake "}, ["wake", "data", "wake", "data"], [-1, 1, -1, 1]),
        ({"rest": "sleep"}, ["wake", "sleep", "model", "sleep"], [1, 0, -1, 0]),
        ({"rest": ["wake"]}, ["wake", "sleep", "data", "sleep"], [0, -1, 1, -1]),
        ({"positive": "sleep"}, ["sleep", "free", "sleep", "free"], [1, -1, 1, -1]),
        ({"positive": "nrem", "rest": "1"}, ["nrem", 1, "-", 1], [1, 0, -1, 0]),
    ],
)
def test_words_that_are_given_win_over_the_usual_ones(words, types, signs):
    """Signs by hand, without the gaps after the second row and the third."""
    sign = fp.Recorded(TABLE | {"type": types}, rate=2, **words).sign
    np.testing.assert_array_equal(np.asarray(sign)[[0, 1, 3, 5]], signs)


def test_the_column_that_is_named_says_when_phases_end():
    """Not another one that looks like it: `length` is not a time here."""
    ends = [o + d for o, d in zip(TABLE["onset"], TABLE["duration"], strict=True)]
    table = {"onset": TABLE["onset"], "stop": ends, "type": TABLE["type"], "length": [9, 9, 9, 9]}
    process = fp.Recorded(table, rate=2, offset="stop")
    np.testing.assert_array_equal(tick_by_tick(process, 6), by_hand(TABLE, 2))


def test_rows_need_not_be_in_order_and_numbers_are_types_too():
    order = [2, 0, 3, 1]
    table = pd.DataFrame(TABLE).iloc[order]
    table["type"] = [float(SIGNS[kind]) for kind in table["type"]]
    np.testing.assert_array_equal(tick_by_tick(fp.Recorded(table, rate=2), 6), by_hand(TABLE, 2))


@pytest.mark.parametrize("name", ["onset", "duration"])
def test_times_with_a_unit_of_their_own_are_refused(name):
    """pandas keeps dates and timedeltas as whole numbers of a unit that it chooses."""
    table = pd.DataFrame(TABLE)
    seconds = pd.to_timedelta(table[name], unit="s")
    for odd in (seconds, pd.Timestamp("2024-01-01") + seconds):
        with pytest.raises(ValueError, match=f"the column '{name}' holds dates or timedeltas"):
            fp.Recorded(table.assign(**{name: odd}))


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_files(tmp_path, ending, separator):
    """A CSV file, and an events file as BIDS writes it."""
    path = tmp_path / f"sub-01_events{ending}"
    table = pd.DataFrame(TABLE).rename(columns={"type": "trial_type"})
    table.to_csv(path, sep=separator, index=False)
    np.testing.assert_array_equal(tick_by_tick(fp.Recorded(path, rate=2), 6), by_hand(TABLE, 2))


def test_nwb_intervals(tmp_path):
    """Written and read by pynwb."""
    pynwb = pytest.importorskip("pynwb")
    begin = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    file = pynwb.NWBFile(session_description="-", identifier="-", session_start_time=begin)
    file.add_trial_column("stage", "of sleep")
    for onset, duration, kind in zip(*TABLE.values(), strict=True):
        file.add_trial(start_time=onset, stop_time=onset + duration, stage=kind)
    path = tmp_path / "night.nwb"
    with pynwb.NWBHDF5IO(str(path), "w") as out:
        out.write(file)
    np.testing.assert_array_equal(tick_by_tick(fp.Recorded(path, rate=2), 6), by_hand(TABLE, 2))
    with pytest.raises(ValueError, match="no intervals 'epochs'; it has trials"):
        fp.Recorded(path, intervals="epochs")


# ---- after the record


def test_shuffled_blocks_are_all_there_in_every_pass():
    """Every block once in a pass, whole and in its own order; another order in the next pass and in
    another lane.
    """
    n = 23
    table = {"onset": np.arange(n) * 100, "duration": 1 + np.arange(n), "type": ["+", "-"] * 11}
    table["type"] = [*table["type"], "+"]
    process = fp.Recorded(table, after="shuffle", block=8)
    number = len(process.sign)  # gaps are phases too
    ticks = {
        key: np.asarray(tape(process, jax.random.key(key), 3 * number).ticks) for key in (0, 1)
    }
    whole, size = np.asarray(process.ticks), process.block
    blocks = [tuple(whole[i : i + size]) for i in range(0, number, size)]
    orders = []
    for told in ticks.values():
        for one in told.reshape(3, number):
            order, rest = [], tuple(one)
            while rest:
                (at,) = (i for i, b in enumerate(blocks) if i not in order and rest[: len(b)] == b)
                order.append(at)
                rest = rest[len(blocks[at]) :]
            assert sorted(order) == list(range(len(blocks)))
            orders.append(tuple(order))
    assert len(set(orders)) > 3


def test_a_record_that_ends():
    process = fp.Recorded(TABLE, rate=2, after="end")
    assert process.ends == 22 and process.rests
    ticks = list(fp.schedule((process, fp.always_on)))
    np.testing.assert_array_equal([t.sign for t in ticks], by_hand(TABLE, 2))
    rows = fp.Rows(np.eye(3))
    run = fp.Run(fp.RBM(3, 2), process, fp.always_on, rows, fp.Optimiser(0.1))
    assert int(fp.train(run, ticks=22).dataset["ticks"].max()) == 22
    with pytest.raises(ValueError, match="end after 22 ticks, and training would last 23"):
        fp.train(run, ticks=23)


@pytest.mark.parametrize("inside", [lambda p: fp.Pauses(p, 3), lambda p: fp.Stretched(p, 30)])
def test_a_record_that_ends_is_not_hidden_in_another_process(inside):
    inside(fp.Recorded(TABLE, rate=10))
    with pytest.raises(ValueError, match=r"phases that end cannot be .*after='repeat'"):
        inside(fp.Recorded(TABLE, rate=10, after="end"))


def test_a_record_that_alternates_will_do_for_two_terms():
    two = fp.estimators.two_term
    fp.schedule((fp.Recorded(TABLE, rate=2), two), phases=1)
    with pytest.raises(ValueError, match="needs phases that alternate"):
        fp.schedule((fp.Recorded(TABLE, rate=2, after="shuffle", block=1), two), phases=1)


# ---- bad input


def changed(**columns):
    return TABLE | columns


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (changed(duration=[2.5, 1, 0.5, 1]), {}, "begin at 0 and 2 overlap"),
        (changed(type=["wake", "nap", "wake", "sleep"]), {}, "unknown type 'nap'; say what they"),
        ({"onset": [], "duration": [], "type": []}, {}, "table of phases is empty"),
        (changed(duration=[2, -1, 0.5, 1]), {}, "row 1 has a negative duration"),
        (changed(), {"rate": 0.3}, "less than one; raise the rate"),
        (changed(duration=[2, 0, 0.5, 1]), {}, "less than one; raise the rate"),
        (changed(onset=[10, float("nan"), 13.5, 20]), {}, "finite number in every row"),
        (changed(onset=["a", 12, 13.5, 20]), {}, "finite number in every row"),
        (changed(type=["wake"] * 4), {}, "has no negative phase"),
        ({"onset": [0, 1], "type": ["+", "-"]}, {}, "needs a column duration or offset"),
        ({"begins": [0], "lasts": [1]}, {}, "looks like the onset"),
        (changed(), {"type": "stage"}, "no column 'stage' for type; it has onset"),
        (
            changed(),
            {"positive": "wake", "rest": ["a", " Wake"]},
            "'wake' is given as positive and",
        ),
        (
            changed(until=[1] * 4),
            {"duration": "duration", "offset": "until"},
            "name its duration or its offset, not both",
        ),
        (changed(), {"rate": 0}, "the rate"),
        (changed(), {"rate": float("inf")}, "the rate"),
        (changed(), {"after": "stop"}, "one of repeat, shuffle, end"),
        (changed(), {"block": 0}, "phases of a block"),
        (changed(onset=[0, 3e9, 6e9, 9e9]), {}, "more than 2.31; lower the rate"),
        ([1, 2], {}, "not list"),
        ("nowhere.csv", {}, "no table of phases at nowhere.csv"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(table, options, words):
    with pytest.raises(ValueError, match=words) as error:
        fp.Recorded(table, **({"rate": 10} | options))
    assert str(error.value).endswith((".", "?")) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("sign", "ticks", "words"),
    [
        ([], [], "not empty"),
        ([1, -1], [3], "of the same length"),
        ([[1, -1]], [[3, 4]], "a list of signs"),
        (1, 3, "a list of signs"),
        ([1, -1], None, "a list of signs"),
        ([1, -2], [3, 4], "must be 1, -1 or 0"),
        ([1, 0.5], [3, 4], "must be 1, -1 or 0"),
        ([1, float("nan")], [3, 4], "must be 1, -1 or 0"),
        (["1", "-1"], [3, 4], "must be 1, -1 or 0"),
        ([1, -1], [3, 0], "whole numbers of ticks"),
        ([1, -1], [3, 2.5], "whole numbers of ticks"),
        ([1, -1], [3, float("inf")], "whole numbers of ticks"),
        ([1, -1], [2**31, 4], "fewer than 2"),
        ([1, 0], [3, 4], "no negative phase"),
        ([-1, -1], [3, 4], "no positive phase"),
    ],
)
def test_bad_signs_and_ticks_are_refused_in_a_sentence(sign, ticks, words):
    with pytest.raises(ValueError, match=words):
        fp.Recorded(sign=sign, ticks=ticks)


def test_only_phases_that_alternate_can_say_so():
    """Two terms rely on it."""
    for make in (
        lambda alternates: fp.Bernoulli(0.5, alternates=alternates),
        lambda alternates: fp.Markov(0.5, 0.5, alternates=alternates),
        lambda alternates: fp.Pairs(alternates=alternates),
        lambda alternates: fp.Homeostatic(0.5, 1.0, alternates=alternates),
        lambda alternates: fp.Blocks(1, 2, alternates=alternates),
    ):
        assert make(False).alternates is False
        with pytest.raises(ValueError, match="only phases that alternate"):
            make(True)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1\n1,2,3\n"])
def test_bad_files_are_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.csv cannot be read as a table of phases \(.+\)\.$"):
        fp.Recorded(path)
    (tmp_path / "phases.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"must end in \.csv, \.tsv, \.nwb"):
        fp.Recorded(tmp_path / "phases.mat")
