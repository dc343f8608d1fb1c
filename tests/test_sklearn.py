"""scikit-learn's own checks of an estimator, and numbers from scikit-learn and from enumeration."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from flexphase import bars_and_stripes
from flexphase.sklearn import (
    BernoulliRBM,
    EquilibriumPropagationClassifier,
    ForwardForwardClassifier,
)

# The checks train on data of any scale; a Bernoulli RBM warns where pixels are cut off.
CUT = pytest.mark.filterwarnings("ignore:the data lie in")
DIGITS, LABELS = load_digits(return_X_y=True)
# Every third image: all ten digits, and quick.
TRAIN, TEST = slice(0, 1200, 3), slice(1200, None, 3)


@CUT
@parametrize_with_checks([BernoulliRBM(4, n_iter=2, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        ForwardForwardClassifier((16,), n_iter=60, learning_rate=0.02, random_state=0),
        EquilibriumPropagationClassifier((16,), n_iter=40, batch_size=4, random_state=0),
    ]
)
def test_scikit_learns_own_checks_of_classifiers(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rbm():
    data = np.asarray(bars_and_stripes(4), np.float64)
    return BernoulliRBM(6, n_iter=60, learning_rate=0.05, random_state=0).fit(data), data


def test_log_likelihood_is_that_of_enumeration(rbm):
    """sum over all 2^16 visible states of exp(score) is 1, and so is the row's own share."""
    machine, data = rbm
    every = np.array(list(itertools.product([0.0, 1.0], repeat=16)))
    exact = machine.set_params(likelihood="exact")
    assert np.exp(exact.score_samples(every)).sum() == pytest.approx(1, rel=1e-4)
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    energy = (
        -data @ machine.intercept_visible_[:, None]
        - (hidden @ machine.intercept_hidden_)[None]
        - data @ machine.components_.T @ hidden.T
    )
    free = -np.log(np.exp(-energy).sum(1))
    np.testing.assert_allclose(exact._free_energy(data), free, rtol=1e-6)


def test_the_hidden_units_are_kept_as_in_scikit_learn(rbm):
    """A row for each chain: there is one; scikit-learn has one for each row of a batch."""
    machine, data = rbm
    assert machine.h_samples_.shape == (1, 6) and set(np.unique(machine.h_samples_)) <= {0, 1}
    theirs = Theirs(6, batch_size=1, n_iter=1, random_state=0).fit(data).h_samples_
    assert machine.h_samples_.shape == theirs.shape and machine.h_samples_.dtype == theirs.dtype


def test_annealed_importance_sampling_agrees_with_enumeration(rbm):
    machine, data = rbm
    exact = clone_fitted(machine, "exact").score(data)
    assert clone_fitted(machine, "ais").score(data) == pytest.approx(exact, abs=0.05)


def clone_fitted(machine, likelihood):
    """The same weights, with another likelihood."""
    copy = clone(machine)
    vars(copy).update(vars(machine) | {"likelihood": likelihood})
    return copy


def test_same_features_and_pseudo_likelihood_as_scikit_learns_with_the_same_weights(rbm):
    machine, data = rbm
    theirs = Theirs(6, random_state=0)
    theirs.components_, theirs.random_state_ = machine.components_, np.random.RandomState(0)
    theirs.intercept_hidden_ = machine.intercept_hidden_
    theirs.intercept_visible_ = machine.intercept_visible_
    np.testing.assert_allclose(machine.transform(data), theirs.transform(data), rtol=1e-6)
    sparse = csr_matrix(data)
    np.testing.assert_allclose(machine.transform(sparse), machine.transform(data), rtol=1e-12)
    pseudo = clone_fitted(machine, "pseudo").score_samples(data)  # flips the same pixels
    np.testing.assert_allclose(pseudo, theirs.score_samples(data), rtol=1e-6)


def test_gibbs_samples_the_visible_units_given_the_hidden_ones(rbm):
    """P(v' | v) by enumeration of the 64 hidden states; 4,000 samples, z below 4."""
    machine, data = rbm
    v = np.repeat(data[3:4], 4000, 0)
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    p_hidden = machine.transform(data[3:4])[0]
    share = np.prod(np.where(hidden == 1, p_hidden, 1 - p_hidden), 1)
    p = share @ (1 / (1 + np.exp(-(hidden @ machine.components_ + machine.intercept_visible_))))
    z = (machine.gibbs(v).mean(0) - p) / np.sqrt(p * (1 - p) / 4000)
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(
    "rule", ["aol", *(pytest.param(r, marks=pytest.mark.slow) for r in ("cd", "isd", "aol-random"))]
)
def test_every_rule_learns(rule):
    """An untrained machine has 16 log 2 = 11.09 nats a row; the optimum is 108.131 / 32 = 3.38."""
    data = np.asarray(bars_and_stripes(4), np.float64)
    machine = BernoulliRBM(
        16, rule=rule, length=10, n_iter=600, learning_rate=0.1, average=0.5, random_state=0
    )
    machine.set_params(negative_start="carry").fit(data)
    assert -7 < machine.score(data) < -108.131 / 32


def test_partial_fit_goes_on_where_the_last_call_ended():
    data = np.asarray(bars_and_stripes(4), np.float64)
    machine = BernoulliRBM(8, learning_rate=0.1, batch_size=1, random_state=0)
    first = machine.partial_fit(data).score(data)
    for _ in range(30):
        machine.partial_fit(data)
    assert machine.score(data) > first + 0.5


@pytest.mark.parametrize("changed", [{"n_components": 20}, {"negative_start": "carry"}])
def test_partial_fit_refuses_another_machine(changed):
    """The names of the features, and pandas output, are those of the machine that was fitted."""
    data = np.asarray(bars_and_stripes(3), np.float64)
    machine = BernoulliRBM(4, n_iter=1, random_state=0).fit(data)
    machine.set_output(transform="pandas").set_params(**changed)
    with pytest.raises(ValueError, match=r"4 units that were fitted.*set them back.*: fit"):
        machine.partial_fit(data)
    assert list(machine.transform(data)) == list(machine.get_feature_names_out())
    assert len(machine.get_feature_names_out()) == 4
    assert len(machine.fit(data).get_feature_names_out()) == changed.get("n_components", 4)


def test_partial_fit_goes_on_with_another_rate_and_start():
    data = np.asarray(bars_and_stripes(3), np.float64)
    machine = BernoulliRBM(4, n_iter=1, negative_start="data", random_state=0).fit(data)
    before = machine.components_
    machine.set_params(learning_rate=0.5, negative_start="carry").partial_fit(data)
    assert machine.components_.shape == before.shape and (machine.components_ != before).any()


def test_a_chain_that_was_not_kept_cannot_go_on():
    machine = BernoulliRBM(4, n_iter=1, negative_start="carry", random_state=0).fit(np.eye(4))
    with pytest.raises(ValueError, match="negative_start was changed"):
        machine.set_params(negative_start="persistent").partial_fit(np.eye(4))


LEARNERS = [ForwardForwardClassifier, EquilibriumPropagationClassifier]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_number_of_units_is_one_layer(learner):
    """As for MLPClassifier."""
    one, two = (
        learner(sizes, n_iter=1, random_state=0).fit(np.eye(4), [0, 1, 0, 1]) for sizes in (6, (6,))
    )
    np.testing.assert_array_equal(one.predict_proba(np.eye(4)), two.predict_proba(np.eye(4)))
    with pytest.raises(ValueError, match="layer's size must be a whole number, at least 1, not '6"):
        learner("6").fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("learner", LEARNERS)
def test_answers_are_those_of_the_network_that_was_fitted(learner):
    """Whatever is wished for the next one, and after a pickle."""
    network = learner((6,), n_iter=1, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    p = network.predict_proba(np.eye(4))
    network.set_params(hidden_layer_sizes=(8, 8))
    for one in (network, pickle.loads(pickle.dumps(network))):
        np.testing.assert_array_equal(one.predict_proba(np.eye(4)), p)


@pytest.mark.parametrize(
    "estimator",
    [
        BernoulliRBM(4, learning_rate=3e38, batch_size=1, n_iter=50),
        ForwardForwardClassifier((4,), learning_rate=1e38, n_iter=5),
        ForwardForwardClassifier((4,), learning_rate=1e38, n_iter=5, average=None),
        EquilibriumPropagationClassifier((4,), rule="isd", learning_rate=3e38, n_iter=50),
    ],
    ids=["rbm", "forward-forward", "forward-forward, last weights", "equilibrium-propagation"],
)
def test_divergence_is_an_error_and_no_answer(estimator):
    """Such steps leave the range of single precision, 3.4e38. Weights that are not finite would
    give every row the first class.
    """
    data, labels = np.asarray(bars_and_stripes(3), np.float64), np.arange(16) // 8
    estimator.set_params(random_state=0)
    with pytest.raises(ValueError, match=r"diverged.*try a smaller learning_rate"):
        estimator.fit(data, labels)


def test_unknown_words_are_refused_with_the_nearest_one(rbm):
    with pytest.raises(ValueError, match=r"no rule 'ist'.*did you mean"):
        BernoulliRBM(4, rule="ist").fit(np.eye(4))
    with pytest.raises(ValueError, match="likelihood must be"):
        clone_fitted(rbm[0], "bound").score(rbm[1])
    with pytest.raises(ValueError, match="learning_rate must be a number, not 'a'"):
        BernoulliRBM(4, learning_rate="a").fit(np.eye(4))
    with pytest.raises(ValueError, match=r"no rule \['cd'\]"):
        BernoulliRBM(4, rule=["cd"]).fit(np.eye(4))


def test_pipeline_and_grid_search():
    """Chance is 0.1."""
    pipe = make_pipeline(
        MinMaxScaler(),
        BernoulliRBM(40, n_iter=8, random_state=0),
        LogisticRegression(C=100, max_iter=2000),
    )
    search = GridSearchCV(pipe, {"bernoullirbm__learning_rate": [0.05, 0.1]}, cv=2)
    search.fit(DIGITS[TRAIN], LABELS[TRAIN])
    scores = search.cv_results_["mean_test_score"]
    best = (0.05, 0.1)[int(np.argmax(scores))]
    assert search.best_params_["bernoullirbm__learning_rate"] == best and scores.min() > 0.5
    assert search.score(DIGITS[TEST], LABELS[TEST]) > 0.75
    names = search.best_estimator_[:-1].get_feature_names_out()
    assert names[0] == "bernoullirbm0" and len(names) == 40


@pytest.mark.parametrize(
    "pipe",
    [
        make_pipeline(MinMaxScaler(), ForwardForwardClassifier((60, 60), random_state=0)),
        make_pipeline(StandardScaler(), EquilibriumPropagationClassifier((32,), random_state=0)),
    ],
    ids=["forward-forward", "equilibrium-propagation"],
)
def test_classifiers_learn_the_digits(pipe):
    """Chance is 0.1. Words as labels; probabilities sum to 1 and agree with the answers."""
    words = np.array([f"digit {i}" for i in range(10)])
    pipe.fit(DIGITS[TRAIN], words[LABELS[TRAIN]])
    p = pipe.predict_proba(DIGITS[TEST])
    assert pipe.score(DIGITS[TEST], words[LABELS[TEST]]) > 0.8
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-9)
    assert (pipe.classes_[p.argmax(1)] == pipe.predict(DIGITS[TEST])).all()
