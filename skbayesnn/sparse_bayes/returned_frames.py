"""Predictions as data frames, for those who ask for them."""

from .._frames import check_library, make_frame, stamps_in_zone
from .._sklearn import OUTPUT_CONFIG
from .._time_axis import split_time


class ReturnedFramesMixin:
    """``set_output`` of predictions, in analogy to scikit-learn's of transformers.

    By default predictions are arrays, whatever comes in: scikit-learn's convention, on
    which `TransformedTargetRegressor` and others rely.
    """

    def set_output(self, *, predict=None):
        """Choose in what form predictions are returned.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, default=None
            "default" returns arrays, as all estimators of scikit-learn do. "pandas" and
            "polars" return data frames with a column for each output, named as in
            ``fit``, with the index or the column "time" of ``X``. None changes nothing.
            ``clone`` keeps the choice.

        Returns
        -------
        self : estimator
            The estimator.

        Raises
        ------
        ValueError
            For another name.
        ImportError
            If the library is not installed.
        """
        if predict is None:
            return self
        if predict != "default":
            check_library(predict)
        setattr(self, OUTPUT_CONFIG, {"predict": predict})
        return self

    def _returned(self, values, names, X, y=None):
        """Predictions (n_rows,) or (n_rows, n_outputs), as a frame if asked for."""
        library = getattr(self, OUTPUT_CONFIG, {}).get("predict", "default")
        if library == "default":
            return values
        columns = values.reshape(len(values), -1)
        for source in (X, y):
            if source is None:
                continue
            rest, axis = split_time(source, "X")
            stamps = axis.stamps if rest is not source else None
            index = getattr(source, "index", None)
            # a list has a method of this name
            index = None if callable(index) else index
            if stamps is not None or index is not None:
                return make_frame(library, columns, list(names), stamps, index)
        return make_frame(library, columns, list(names))

    def _returned_at(self, values, names, time, zone=None):
        """The same for rows at given times, or None; universal ones of a time zone."""
        library = getattr(self, OUTPUT_CONFIG, {}).get("predict", "default")
        if library == "default":
            return values
        columns = values.reshape(len(values), -1)
        is_time = time is not None and time.dtype.kind in "mM"
        if is_time and zone is not None:
            time = stamps_in_zone(library, time, zone)
        if is_time and library == "pandas":
            index = check_library(library).Index(time)
            return make_frame(library, columns, list(names), index=index)
        return make_frame(library, columns, list(names), time)
