"""Build the Bunch in which a data set is returned: records, images, or rows."""

from importlib import resources

import numpy as np
from sklearn.utils import Bunch

# Samples at the start of a record that a model may read to build up its state. The
# errors reported for these benchmarks leave them out.
N_INITIALIZATION = 50


def build_bunch(
    estimation,
    tests,
    *,
    feature_name,
    target_name,
    sampling_time,
    descr,
    n_initialization=N_INITIALIZATION,
    as_frame=False,
):
    """Arrange the records of one input and one output.

    Parameters
    ----------
    estimation : tuple of two array-likes, each with n_samples elements
        Input and output of the estimation record.

    tests : dict of str to tuple of two array-likes
        Input and output of every test record.

    feature_name, target_name : str
        Column names of the input and the output.

    sampling_time : float
        Time between two samples, in s.

    descr : str
        File name of the description, in the folder ``descr``.

    n_initialization : int, default=50
        Samples at the start of a record that errors leave out.

    as_frame : bool, default=False
        Whether to return the records as pandas objects.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        The keys are those that :func:`fetch_cascaded_tanks` documents.
    """
    names = feature_name, target_name
    tests = {key: _build_record(test, names, as_frame) for key, test in tests.items()}
    return Bunch(
        **_build_record(estimation, names, as_frame),
        tests=Bunch(**tests),
        feature_names=[feature_name],
        target_names=[target_name],
        sampling_time=sampling_time,
        n_initialization=n_initialization,
        DESCR=_load_descr(descr),
    )


def build_image_bunch(splits, *, image_shape, descr, **others):
    """Arrange images and their labels.

    Parameters
    ----------
    splits : dict of str to tuple of two ndarrays
        Images, one per row, and labels of every split. The split ``train`` becomes the
        data and the target of the data set itself.

    image_shape : tuple of int
        Height and width of an image.

    descr : str
        File name of the description, in the folder ``descr``.

    **others : object
        Further attributes of the data set.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        The keys are those that :func:`fetch_caltech101_silhouettes` documents.
    """
    bunches = {
        name: Bunch(data=data, target=target) for name, (data, target) in splits.items()
    }
    train = bunches.pop("train")
    return Bunch(
        **train,
        **bunches,
        image_shape=image_shape,
        **others,
        DESCR=_load_descr(descr),
    )


def build_split_bunch(splits, *, descr):
    """Arrange rows without labels.

    Parameters
    ----------
    splits : dict of str to ndarray of shape (n_samples, n_features)
        Rows of every split. The split ``train`` becomes the data of the data set
        itself.

    descr : str
        File name of the description, in the folder ``descr``.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        The keys are those that :func:`fetch_binary_benchmark` documents.
    """
    bunches = {name: Bunch(data=data) for name, data in splits.items()}
    return Bunch(**bunches.pop("train"), **bunches, DESCR=_load_descr(descr))


def _build_record(record, names, as_frame):
    """Return a Bunch of data (n_samples, 1), target (n_samples,) and frame."""
    # copies: writing into one record must not change another that overlaps it
    u, y = (np.array(signal, dtype=np.float64).ravel() for signal in record)
    if not as_frame:
        return Bunch(data=u.reshape(-1, 1), target=y, frame=None)
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True requires pandas: pip install pandas"
        ) from error
    feature_name, target_name = names
    frame = pd.DataFrame({feature_name: u, target_name: y})
    return Bunch(data=frame[[feature_name]], target=frame[target_name], frame=frame)


def _load_descr(name):
    file = resources.files(__package__) / "descr" / name
    return file.read_text(encoding="utf-8")
