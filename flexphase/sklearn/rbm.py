"""A Bernoulli RBM with the interface of scikit-learn's."""

import warnings
from typing import Any, Literal

import jax
import numpy as np
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ..ais import ais
from ..checks import count, from_zero
from ..core import Optimiser, Run
from ..data import Rows
from ..kernels import MISSING, rbm_nll
from ..likelihood import log_z
from ..methods import RBM
from ..methods.binary import NegativeStart
from ..methods.rbm import Params
from .learning import Learned, learn, rule_of, seed_of, ticks_for

Likelihood = Literal["auto", "exact", "ais", "pseudo"]
EXACT = 20  # units of the smaller layer, up to which `auto` enumerates
DTYPES = (np.float64, np.float32)
COPIES = 2**26  # numbers: how many copies of grey rows, as zeros and ones, are drawn at most


class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann machine as features, under any of the paper's rules.

    It takes the place of `sklearn.neural_network.BernoulliRBM`, whose names it keeps. Rows are
    shown one at a time, each with the step learning_rate / batch_size, so that a pass over the
    data moves the weights as far as scikit-learn's mini-batches of that size do. Pixels between 0
    and 1 are probabilities: zeros and ones are drawn with them.

    Args:
        n_components: hidden units.
        learning_rate: step for a batch of rows.
        batch_size: rows over which that step is spread.
        n_iter: passes over the data; one is as many positive phases as there are rows.
        rule: cd (both terms in turn), isd (one random phase), aol (always on), aol-random.
        b: probability of a positive phase, for isd and aol.
        length: ticks of a phase; their mean for aol-random.
        negative_start: where a negative phase begins: persistent (as in scikit-learn), data,
            carry or random; see `flexphase.RBM`.
        average: slow weights: a fraction such as 0.5 keeps the mean of the weights over the rest
            of training, None the last ones.
        likelihood: what `score_samples` returns, in nats: exact (enumerated; the smaller layer has
            at most 24 units), ais (annealed importance sampling), auto (exact up to 20 units, else
            ais), or pseudo (scikit-learn's pseudo-likelihood).
        verbose: 1 draws a bar.
        random_state: as everywhere in scikit-learn.

    Attributes: `components_` (n_components, n_features), `intercept_hidden_`,
    `intercept_visible_`, `h_samples_` (1, n_components: the hidden units where training ended, of
    one chain in place of scikit-learn's batch), `n_features_in_`, `feature_names_in_`.

    Example: `BernoulliRBM(100, learning_rate=0.06, rule="isd", random_state=0).fit_transform(X)`
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        rule: str = "cd",
        b: float = 0.5,
        length: float = 1,
        negative_start: NegativeStart = "persistent",
        average: float | None = None,
        likelihood: Likelihood = "auto",
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.rule = rule
        self.b = b
        self.length = length
        self.negative_start: NegativeStart = negative_start
        self.average = average
        self.likelihood = likelihood
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "BernoulliRBM":
        """Learn from rows X; y is ignored."""
        passes = count(self.n_iter, "n_iter", 0)
        rows = self._pixels(validate_data(self, X, accept_sparse="csr", dtype=DTYPES))
        self.random_state_ = check_random_state(self.random_state)
        self._keep(self._learn(rows, passes, None), rows.dtype)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> "BernoulliRBM":
        """One pass over more rows, from the weights and the units that the last call left."""
        first = "components_" not in vars(self)
        rows = self._pixels(validate_data(self, X, accept_sparse="csr", dtype=DTYPES, reset=first))
        if first:
            self.random_state_ = check_random_state(self.random_state)
        self._keep(self._learn(rows, 1, None if first else self._learned), rows.dtype)
        return self

    def _run(self, rows: np.ndarray) -> Run:
        from_zero(self.learning_rate, "learning_rate")
        eta = self.learning_rate / count(self.batch_size, "batch_size")
        method = RBM(rows.shape[1], self.n_components, negative_start=self.negative_start)
        return Run(method, *rule_of(self.rule, self.b, self.length), Rows(rows), Optimiser(eta))

    def _learn(self, rows: np.ndarray, passes: int, start: Learned | None) -> Learned:
        shown = self._zeros_and_ones(rows, passes)
        run, seed = self._run(shown), seed_of(self.random_state_)
        if start is not None:
            check_same(run, start)
        if passes == 0:
            params, z = jax.tree.map(np.asarray, run.method.init(jax.random.key(seed)))
            return Learned(params, z)
        ticks = ticks_for(run, passes * len(rows))
        return learn(run, ticks, seed, average=self.average, start=start, verbose=self.verbose)

    def _zeros_and_ones(self, rows: np.ndarray, passes: int) -> np.ndarray:
        """Grey pixels are probabilities: a copy of the rows for each pass, as far as fits."""
        if ((rows == 0) | (rows == 1)).all():
            return rows.astype(np.float32)
        copies = min(max(passes, 1), max(COPIES // rows.size, 1))
        u = self.random_state_.random_sample((copies, *rows.shape))
        return (u < rows).astype(np.float32).reshape(-1, rows.shape[1])

    def _keep(self, learned: Learned, dtype: Any) -> None:
        self._learned = learned
        self.components_ = learned.params.W.T.astype(dtype)
        self._n_features_out = len(self.components_)
        self.intercept_hidden_ = learned.params.c.astype(dtype)
        self.intercept_visible_ = learned.params.a.astype(dtype)
        self.h_samples_ = learned.z.h[None].astype(dtype)

    def transform(self, X: Any) -> np.ndarray:
        """P(h = 1 | v = X), (rows, n_components)."""
        return self._p_hidden(self._checked(X))

    def gibbs(self, v: Any) -> np.ndarray:
        """One Gibbs step from rows v: hidden given v, then visible given hidden."""
        check_is_fitted(self)
        rng = self.random_state_
        p = self._p_hidden(np.asarray(v))
        h = (rng.random_sample(p.shape) < p).astype(p.dtype)
        p = expit(h @ self.components_ + self.intercept_visible_)
        return rng.random_sample(p.shape) < p

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row in nats, -F(v) - log Z; with likelihood="pseudo" the
        pseudo-likelihood of scikit-learn, from one flipped pixel a row.
        """
        v = self._checked(X)
        if self.likelihood != "pseudo":
            return -self._free_energy(v) - self._log_z()
        v = v.toarray() if issparse(v) else v
        flipped, rng = np.array(v), check_random_state(self.random_state)
        at = np.arange(len(v)), rng.randint(0, v.shape[1], len(v))
        flipped[at] = 1 - flipped[at]
        return -v.shape[1] * np.logaddexp(0, self._free_energy(v) - self._free_energy(flipped))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`: what GridSearchCV maximises."""
        return float(self.score_samples(X).mean())

    def _log_z(self) -> float:
        params = Params(self.components_.T, self.intercept_visible_, self.intercept_hidden_)
        params = jax.tree.map(np.float32, params)
        auto = "exact" if min(self.components_.shape) <= EXACT else "ais"
        match auto if self.likelihood == "auto" else self.likelihood:
            case "ais":
                return float(ais(jax.random.key(0), params, 100, 1000).log_z)
            case "exact" if MISSING:
                return float(log_z(params))
            case "exact":
                blank = np.zeros((1, len(params.a)))
                nll = rbm_nll(params.W[None], params.a[None], params.c[None], blank)
                return float((nll - self._free_energy(blank))[0])
        raise ValueError(f"likelihood must be auto, exact, ais or pseudo, not {self.likelihood!r}.")

    def _free_energy(self, v: np.ndarray) -> np.ndarray:
        drive = safe_sparse_dot(v, self.components_.T) + self.intercept_hidden_
        return -safe_sparse_dot(v, self.intercept_visible_) - np.logaddexp(0, drive).sum(1)

    def _p_hidden(self, v: Any) -> np.ndarray:
        return expit(safe_sparse_dot(v, self.components_.T) + self.intercept_hidden_)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", reset=False, dtype=DTYPES)

    def _pixels(self, X: Any) -> np.ndarray:
        """Dense rows in [0, 1]."""
        rows = X.toarray() if issparse(X) else X
        if rows.min() < 0 or rows.max() > 1:
            warnings.warn(
                f"the data lie in [{rows.min():g}, {rows.max():g}] and a Bernoulli RBM learns "
                "pixels between 0 and 1: values beyond are cut off. Put a MinMaxScaler before it.",
                stacklevel=3,
            )
        return np.clip(rows, 0, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_same(run: Run, start: Learned) -> None:
    """Refuse to go on with another number of units, or from units that lack the chain of
    `persistent`.
    """
    ours = jax.eval_shape(run.method.init, jax.random.key(0))
    if form_of(ours) != form_of(tuple(start)):
        raise ValueError(
            f"partial_fit goes on with the {start.z.h.size} units that were fitted, and "
            "n_components or negative_start was changed since; set them back, or begin anew: fit."
        )


def form_of(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Its structure and the shapes of its arrays."""
    return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
