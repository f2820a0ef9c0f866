"""What a fitted dynamic model can become: a state space, C, ONNX.

Each method imports what it needs when it is called.
"""

from functools import partial

from sklearn.utils.validation import check_is_fitted

from .training_record import input_names, output_names


class ExportMixin:
    """Exports of the equations of a model on lags or with hidden states."""

    def to_state_space(self, *, sampling_time=None):
        """Convert to x(t+1) = f(x, u), y = g(x, u), with exact Jacobians.

        Parameters
        ----------
        sampling_time : float, default=None
            Time between two rows, for the time axis of responses and for
            python-control; ``sampling_time_`` by default, where the fit has found one.

        Returns
        -------
        space : StateSpaceModel
            A copy of what it needs of the model: operating points, linearisation,
            static gain, step and impulse responses.
        """
        from .deployment.state_space import StateSpaceModel

        equations = self._equations()
        if sampling_time is None:
            sampling_time = getattr(self, "sampling_time_", None)
        named = hasattr(self, "feature_names_in_"), hasattr(self, "output_names_")
        return StateSpaceModel(equations, sampling_time, named=named)

    def to_c(self, path, *, name=None):
        """Write the model as one file of C99, without dependencies or allocation.

        Its functions make one step of a free run, take measured outputs, as a stream
        does, and start from the training means; each in double and in single
        precision. In double precision they give the outputs of a stream bit for bit if
        the compiler is asked for what Numba uses: ``-std=c99``, and on x86 ``-mfma``.
        Those of networks with hidden states are their extended Kalman filters, and
        differ from a stream by rounding. An ensemble of both kinds is one file, too.

        Parameters
        ----------
        path : str or path-like
            The file to write, such as "tanks.c".
        name : str, default=None
            Prefix of all names in it; by default that of the file without its ending.

        Returns
        -------
        path : pathlib.Path
            The file.

        Raises
        ------
        ValueError
            If the name is no identifier of C.

        Examples
        --------
        The file begins with how it is used::

            tanks_state s;
            tanks_init(&s);
            tanks_step(&s, &voltage, &level);
        """
        from .deployment import c_filter, c_mixture, c_source
        from .deployment.c_frame import write

        equations, ensemble = self._equations(), self._model.ensemble
        if ensemble.is_mixed:
            groups = [self._equations(group) for group in ensemble.alike()]
            source = partial(c_mixture.source, equations, groups)
        else:
            kind = c_filter if equations.filters else c_source
            source = partial(kind.source, equations)
        return write(source, path, name)

    def to_onnx(self, path=None, *, dtype="float32", combine="median"):
        """Convert one step to ONNX: (state, u) -> (state_next, y).

        The graph has standard operators alone, and any number of rows, each of them a
        run of its own. Its state is that of :meth:`to_state_space`; names of its
        entries, and ``initial_state``, that of the training means, are in the metadata
        of the model. Feed ``state_next`` back as ``state``. A model without inputs has
        no ``u``; one without lags has no state.

        Parameters
        ----------
        path : str or path-like, default=None
            A file to write, such as "tanks.onnx".
        dtype : {"float32", "float64"}, default="float32"
            Type of all numbers.
        combine : {"median", "mean"}, default="median"
            How y follows from the networks of an ensemble: their weighted median, as in
            :meth:`predict`, or their weighted mean. The mean has continuous
            derivatives, which optimisers such as CasADi's need.

        Returns
        -------
        model : onnx.ModelProto
            The checked model.

        Raises
        ------
        ImportError
            Without onnx: ``pip install onnx``.
        ValueError
            For a ``dtype`` or ``combine`` that is none of these.

        Notes
        -----
        The graph of a single network, and that of the mean of an ensemble, consist of
        Concat, MatMul, Add, Sub, Mul and the activation, which do-mpc turns into an
        expression of CasADi. The median needs operators that do-mpc lacks, and
        onnxruntime has. As in the state space, a run that diverges goes on.
        """
        from .._onnx_graph import save
        from .deployment.onnx_step import step_model

        return save(step_model(self._equations(), dtype, combine), path)

    def _equations(self, ensemble=None):
        """All that the exports need of the model, or of some of its networks."""
        from .deployment.equations import Equations
        from .deployment.hidden_outputs import with_hidden_outputs

        check_is_fitted(self)
        model = self._model
        ensemble = model.ensemble if ensemble is None else ensemble
        names = input_names(self), output_names(self, ensemble.n_outputs)
        filters = ensemble.filters
        if filters:
            ensemble = with_hidden_outputs(ensemble, filters)
        means = model.u_mean, model.y_mean
        return Equations(ensemble, means, model.bands, *names, filters)
