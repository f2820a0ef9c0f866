"""Features, energies and pseudo-likelihoods of a fitted RBM."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import metadata_routing
from sklearn.utils.validation import check_is_fitted

from .._validation import check_array, check_container
from . import model as rbm_model


class FeaturesMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods that need no partition function and no random numbers."""

    # the data of this method, and not what a meta-estimator may pass beside them
    __metadata_request__inverse_transform = {"H": metadata_routing.UNUSED}

    def transform(self, X):
        """Compute the expected states of the hidden units.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states, turned into 0 and 1 by ``binarize``.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components_), dtype of ``components_``
            E[h | v] of (2), times the unit's weight in a fractional RBM.

        Raises
        ------
        ValueError
            For no rows, other features than those of the fit, by number or name,
            missing values (`impute` fills them in), values that are not finite or,
            with ``binarize=None``, outside [0, 1], and masked values.
        """
        return self._hidden_means(X)

    def staged_transform(self, X):
        """Yield the features of the first unit, of the first two, and so on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Yields
        ------
        H : ndarray of shape (n_samples, k)
            The first k columns of ``transform(X)``, k = 1 to ``n_components_``.

        Raises
        ------
        ValueError
            As ``transform`` does.
        """
        H = self._hidden_means(X)
        for k in range(1, self.n_components_ + 1):
            yield H[:, :k]

    def to_onnx(self, path=None, *, dtype="float32"):
        """Convert ``transform`` to ONNX: X -> H.

        The graph has standard operators alone, and any number of rows.

        Parameters
        ----------
        path : str or path-like, default=None
            A file to write, such as "features.onnx".
        dtype : {"float32", "float64"}, default="float32"
            Type of all numbers.

        Returns
        -------
        model : onnx.ModelProto
            The checked model.

        Raises
        ------
        ImportError
            Without onnx: ``pip install onnx``.
        """
        from .._onnx_graph import save
        from .onnx_features import features_model

        check_is_fitted(self)
        rbm, n_features = self._inference_rbm(), self.n_features_in_
        return save(features_model(rbm, self.binarize, n_features, dtype), path)

    def inverse_transform(self, H):
        """Compute the expected visible states from hidden ones.

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components_)
            Hidden states or their expectations, as ``transform`` returns them.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features_in_), dtype of ``components_``
            E[v | h], probabilities.

        Raises
        ------
        ValueError
            If ``H`` has not a column for each unit, or holds missing values.
        """
        check_is_fitted(self)
        check_container(H, "H")
        H = check_array(H, dtype=self.components_.dtype, input_name="H")
        if H.shape[1] != self.n_components_:
            raise ValueError(
                f"H must have a column for each of the {self.n_components_} units; "
                f"got {H.shape[1]} columns."
            )
        return rbm_model.visible_means(self._inference_rbm(), H)

    def free_energy(self, X):
        """Compute the free energy of visible states.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        F : ndarray of shape (n_samples,), float64
            -log of the unnormalised probability (3), in nats.

        Raises
        ------
        ValueError
            As ``transform`` does.
        """
        return self._free_energies(self._check_rows(X))

    def pseudo_likelihood(self, X):
        """Compute the log pseudo-likelihood, over all features.

        Deterministic, and independent of the partition function. It takes
        n_samples x n_features x n_components_ evaluations of a unit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        pl : ndarray of shape (n_samples,), float64
            The sum over features of log p(v_j | all others), in nats.

        Raises
        ------
        ValueError
            As ``transform`` does.
        """
        rows = self._check_rows(X)
        rbm = self._inference_rbm()
        return np.concatenate(
            [rbm_model.pseudo_likelihood(rbm, V) for V in self._blocks(rows)]
        )

    def _free_energies(self, rows):
        rbm = self._inference_rbm()
        return np.concatenate(
            [rbm_model.free_energy(rbm, V) for V in self._blocks(rows)]
        )

    def _hidden_means(self, X):
        rows = self._check_rows(X)
        rbm = self._inference_rbm()
        return np.concatenate(
            [rbm_model.hidden_means(rbm, V) for V in self._blocks(rows)]
        )
