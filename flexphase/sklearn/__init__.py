"""Estimators with scikit-learn's interface, trained under flexible phases.

`BernoulliRBM` takes the place of `sklearn.neural_network.BernoulliRBM`; `ForwardForwardClassifier`
and `EquilibriumPropagationClassifier` are classifiers like `sklearn.neural_network.MLPClassifier`.
All of them work in a `Pipeline` and under `GridSearchCV`. Needs scikit-learn 1.6 or later:
`pip install 'flexphase[sklearn]'`.

Example: `make_pipeline(MinMaxScaler(), BernoulliRBM(100), LogisticRegression()).fit(X, y)`
"""

from .classifiers import EquilibriumPropagationClassifier, ForwardForwardClassifier
from .rbm import BernoulliRBM

__all__ = ["BernoulliRBM", "EquilibriumPropagationClassifier", "ForwardForwardClassifier"]
