"""Forward-Forward and equilibrium propagation as classifiers with scikit-learn's interface."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..catalogue import RULES
from ..checks import count
from ..classification import scores_of
from ..core import Optimiser, Run
from ..data import LabelContrast, Rows
from ..methods import EquilibriumPropagation, ForwardForward
from ..replicas import Batches, Replicas
from .learning import learn, rule_of, seed_of, ticks_for

BLOCK = 256  # rows per call; always as many, so that other rows do not change the bits of an answer


class PhaseClassifier(ClassifierMixin, BaseEstimator):
    """What both classifiers share: labels of any kind, fitting, and answers from probabilities."""

    n_iter: int
    batch_size: int
    average: float | None
    verbose: int
    random_state: Any
    classes_: np.ndarray
    n_features_in_: int

    def fit(self, X: Any, y: Any) -> "PhaseClassifier":
        """Learn labels y, of any kind, from rows X."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes, and y has one class."
            )
        run = self._run(X.astype(np.float32), labels)
        ticks = ticks_for(run, count(self.n_iter, "n_iter") * len(X) / self.batch_size)
        seed = seed_of(self.random_state)
        learned = learn(run, ticks, seed, average=self.average, verbose=self.verbose)
        self.params_ = learned.params
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, (rows, classes), in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._proba(X.astype(np.float32))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def _run(self, X: np.ndarray, labels: np.ndarray) -> Run:
        raise NotImplementedError

    def _proba(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class ForwardForwardClassifier(PhaseClassifier):
    """Forward-Forward: each layer learns to answer a true label with a high goodness.

    The label is shown one-hot beside the features; a wrong one makes a negative phase. The class
    whose label gives the highest goodness, summed over the layers, is the answer, and the softmax
    of these sums its probability. Features should have a common scale.

    Args:
        hidden_layer_sizes: units of each layer; a number is one layer.
        rule: isd (one random phase at a time), cd (the same row with both labels in turn).
        b: probability of a positive phase, for isd.
        learning_rate: of Adam.
        n_iter: passes over the data; one is as many positive phases as there are rows.
        threshold: of the goodness.
        average: slow weights: a fraction such as 0.5 keeps the mean of the weights over the rest
            of training, None the last ones.
        verbose: 1 draws a bar.
        random_state: as everywhere in scikit-learn.

    Attributes: `classes_`, `params_` (W and c of each layer), `n_features_in_`.

    Example: `ForwardForwardClassifier((200, 200), random_state=0).fit(X, y).score(X, y)`
    """

    batch_size = 1

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (200, 200),
        *,
        rule: str = "isd",
        b: float = 0.5,
        learning_rate: float = 0.005,
        n_iter: int = 20,
        threshold: float = 2.0,
        average: float | None = 0.5,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.rule = rule
        self.b = b
        self.learning_rate = learning_rate
        self.n_iter = n_iter
        self.threshold = threshold
        self.average = average
        self.verbose = verbose
        self.random_state = random_state

    def _run(self, X: np.ndarray, labels: np.ndarray) -> Run:
        classes, rule = len(self.classes_), rule_of(self.rule, self.b, 1)
        X = self._with_room(X)
        sizes = (X.shape[1], *layers_of(self.hidden_layer_sizes))
        method = ForwardForward(sizes, classes, self.threshold)
        paired = RULES[self.rule].update == "pair"
        source = LabelContrast(X, labels, classes, paired=paired)
        return Run(method, *rule, source, Optimiser(self.learning_rate, optax.adam))

    def _with_room(self, X: np.ndarray) -> np.ndarray:
        """Columns in front where the label is written."""
        return np.pad(X, ((0, 0), (len(self.classes_), 0)))

    def _proba(self, X: np.ndarray) -> np.ndarray:
        lane = jax.tree.map(lambda leaf: leaf[None], self.params_)
        X, classes = self._with_room(X), len(self.classes_)
        goodness = scores_of(lane, jnp.asarray(X), classes)[0]
        return softmax(goodness.astype(np.float64), axis=1)


class EquilibriumPropagationClassifier(PhaseClassifier):
    """Equilibrium propagation: a nudge towards the label, and the change that it makes.

    The outputs of the free network are trained towards the label, one-hot; the largest is the
    answer. Features should have a common scale, such as StandardScaler gives.

    Args:
        hidden_layer_sizes: units of each hidden layer; a number is one layer.
        rule: two-term (both phases in turn), isd, aol, aol-random.
        b: probability of a positive phase, for isd and aol.
        length: ticks of a phase.
        beta: strength of the nudge.
        centred: nudge negative phases too, by -beta: a better gradient.
        learning_rate: of plain gradient descent.
        batch_size: rows at a time; copies of the network share their synapses and their phase.
        n_iter: passes over the data.
        average, verbose, random_state: as in `ForwardForwardClassifier`.

    Attributes: `classes_`, `params_` (W and c of each layer), `method_` (the network that has
    them), `n_features_in_`.

    Example: `make_pipeline(StandardScaler(), EquilibriumPropagationClassifier()).fit(X, y)`
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (64,),
        *,
        rule: str = "two-term",
        b: float = 0.5,
        length: float = 20,
        beta: float = 0.5,
        centred: bool = True,
        learning_rate: float = 0.1,
        batch_size: int = 16,
        n_iter: int = 30,
        average: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.rule = rule
        self.b = b
        self.length = length
        self.beta = beta
        self.centred = centred
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.average = average
        self.verbose = verbose
        self.random_state = random_state

    def _method(self) -> EquilibriumPropagation:
        hidden = layers_of(self.hidden_layer_sizes)
        sizes = (self.n_features_in_, *hidden, len(self.classes_))
        return EquilibriumPropagation(sizes, self.beta, centred=self.centred)

    def _run(self, X: np.ndarray, labels: np.ndarray) -> Run:
        n = count(self.batch_size, "batch_size")
        targets = np.eye(len(self.classes_), dtype=np.float32)[labels]
        self.method_ = self._method()
        method, source = Replicas(self.method_, n), Batches(Rows((X, targets)), n)
        rule = rule_of(self.rule, self.b, self.length)
        return Run(method, *rule, source, Optimiser(self.learning_rate))

    def _proba(self, X: np.ndarray) -> np.ndarray:
        """The outputs, made to sum to 1."""
        blocks = [X[i : i + BLOCK] for i in range(0, len(X), BLOCK)]
        answer = partial(answers, self.method_, self.params_)
        outputs = np.concatenate([answer(block) for block in blocks]).astype(np.float64)
        outputs = outputs.clip(1e-6)
        return outputs / outputs.sum(1, keepdims=True)


def layers_of(sizes: Any) -> tuple[int, ...]:
    """The units of each layer; a number is one layer, as for MLPClassifier."""
    return tuple(sizes) if np.ndim(sizes) else (sizes,)


def answers(method: EquilibriumPropagation, params: Any, block: np.ndarray) -> np.ndarray:
    """Outputs of the free network for at most BLOCK rows."""
    full = np.pad(block, ((0, BLOCK - len(block)), (0, 0)))
    return np.asarray(_predict(method, params, full))[: len(block)]


@eqx.filter_jit
def _predict(method: EquilibriumPropagation, params: Any, inputs: Any) -> Any:
    return method.predict(params, inputs)
