"""scikit-learn's own checks of an estimator, and numbers from scikit-learn and from enumeration."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
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

ESTIMATORS = [
    BernoulliRBM(4, n_iter=2, random_state=0),
    ForwardForwardClassifier((16,), n_iter=60, learning_rate=0.02, random_state=0),
    EquilibriumPropagationClassifier((16,), n_iter=40, batch_size=4, random_state=0),
]
#: Checks of scikit-learn that cannot hold here, with the reason.
EXPECTED: dict[str, dict[str, str]] = {}


def expected(estimator):
    return EXPECTED.get(type(estimator).__name__, {})


@pytest.mark.filterwarnings("ignore:the data lie in")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
