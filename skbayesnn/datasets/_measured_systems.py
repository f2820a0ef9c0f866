"""Measured benchmarks of system identification, loaded from files."""

import io

from scipy.io import loadmat

from ._layouts import build_bunch
from ._remote_files import RemoteFile, load_file

CASCADED_TANKS = RemoteFile(
    title="Cascaded Tanks",
    folder="cascaded_tanks",
    filename="dataBenchmark.mat",
    sha256="cb2f88d4388be4d3f2a24c6402fba804976aac5f2e1f26cda59ea0a38d016eab",
    packed="CascadedTanksFiles.zip",
    urls=(
        "https://data.4tu.nl/file/d4810b78-6cdd-48fe-8950-9bd601e5f47f/"
        "3b697e42-01a4-4979-a370-813a456c36f5",
    ),
    page="https://www.nonlinearbenchmark.org/benchmarks/cascaded-tanks",
)
SILVERBOX = RemoteFile(
    title="Silverbox",
    folder="silverbox",
    filename="SNLS80mV.mat",
    sha256="5c7413a52255af0cb4e2f93fb6903beb92b08965ba1e6ad0a6ffedfed8477ed4",
    packed="SilverboxFiles.zip",
    urls=(),
    page=(
        "https://drive.google.com/file/d/17iS-6oBUUgrmiAcrZoG9S5sOaljZnDSy/view "
        "(linked from https://www.nonlinearbenchmark.org/benchmarks/silverbox)"
    ),
)


def fetch_cascaded_tanks(
    *,
    data_home=None,
    download_if_missing=True,
    return_X_y=False,
    as_frame=False,
    n_retries=3,
    delay=1.0,
):
    """Load the Cascaded Tanks benchmark (regression of a time series).

    =================   =======================
    Estimation record   1024 samples
    Test record         1024 samples
    Input               pump voltage, 0.4 - 6.5
    Output              level, 2.1 - 10.0
    =================   =======================

    A pump fills the upper of two water tanks, which drains into the lower one, whose
    level is measured [1]_. Both tanks overflow.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data sets, in which ``cascaded_tanks/dataBenchmark.mat`` or
        ``cascaded_tanks/CascadedTanksFiles.zip`` is looked up. None stands for the
        environment variable ``SKBAYESNN_DATA`` or, if that is not set, for the folder
        ``skbayesnn`` in scikit-learn's data home.

    download_if_missing : bool, default=True
        If False, raise an OSError if the file is missing, instead of downloading it.
        A download needs pooch and tqdm: ``pip install pooch tqdm``.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the estimation record.

    as_frame : bool, default=False
        If True, return the records as pandas objects.

    n_retries : int, default=3
        Number of retries after a failed download.

    delay : float, default=1.0
        Time between two attempts, in s.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (1024, 1), dtype float64
            Pump voltage of the estimation record, in V.
        target : ndarray of shape (1024,), dtype float64
            Level of the lower tank, in V of the level sensor.
        frame : DataFrame of shape (1024, 2) or None
            Data and target in one frame if ``as_frame`` is True.
        tests : :class:`~sklearn.utils.Bunch`
            The test record ``test``, a Bunch of data, target and frame.
        feature_names, target_names : list of str
            Names of the columns.
        sampling_time : float
            4.0 s.
        n_initialization : int
            50, the number of samples at the start of a record that errors leave out.
        DESCR : str
            Description of the data set.

    (data, target) : tuple if ``return_X_y`` is True
        As above.

    Raises
    ------
    OSError
        If the file is missing and is not downloaded, or the download fails.

    ValueError
        If the SHA-256 of a file is not the expected one.

    ImportError
        If a package for the download, or pandas for ``as_frame``, is not installed.

    See Also
    --------
    make_cascaded_tanks : A simulation that needs no file.

    References
    ----------
    .. [1] M. Schoukens, P. Mattsson, T. Wigren, J.-P. Noël, "Cascaded tanks benchmark
       combining soft and hard nonlinearities", Workshop on Nonlinear System
       Identification Benchmarks, Brussels, 2016.

    Examples
    --------
    >>> from skbayesnn.datasets import fetch_cascaded_tanks
    >>> tanks = fetch_cascaded_tanks()  # doctest: +SKIP
    >>> tanks.data.shape, tanks.tests.test.target.shape  # doctest: +SKIP
    ((1024, 1), (1024,))
    """
    record = _load_mat(CASCADED_TANKS, data_home, download_if_missing, n_retries, delay)
    dataset = build_bunch(
        (record["uEst"], record["yEst"]),
        {"test": (record["uVal"], record["yVal"])},
        feature_name="pump_voltage",
        target_name="level",
        sampling_time=4.0,
        descr="cascaded_tanks.rst",
        as_frame=as_frame,
    )
    return (dataset.data, dataset.target) if return_X_y else dataset


def fetch_silverbox(
    *,
    data_home=None,
    download_if_missing=True,
    return_X_y=False,
    as_frame=False,
    n_retries=3,
    delay=1.0,
):
    """Load the Silverbox benchmark (regression of a time series).

    =========================   =============
    Estimation record           65062 samples
    Test ``multisine``          21688 samples
    Test ``arrow``              40475 samples
    Test ``no_extrapolation``   32000 samples
    =========================   =============

    An electronic circuit that behaves like a mass on a hardening spring, a Duffing
    oscillator [1]_. In the test record ``arrow``, the amplitude of the input grows
    beyond that of the estimation record; ``no_extrapolation`` is its first part, in
    which it does not.

    The archive is on Google Drive, from which a program cannot download it reliably.
    Download it once with a browser and put it into the folder that ``data_home``
    describes.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data sets, in which ``silverbox/SNLS80mV.mat`` or
        ``silverbox/SilverboxFiles.zip`` is looked up. None stands for the environment
        variable ``SKBAYESNN_DATA`` or, if that is not set, for the folder
        ``skbayesnn`` in scikit-learn's data home.

    download_if_missing : bool, default=True
        Accepted as in :func:`fetch_cascaded_tanks`, but a missing file is an OSError
        in both cases. If True, the message says how to get the file.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the estimation record.

    as_frame : bool, default=False
        If True, return the records as pandas objects.

    n_retries : int, default=3
        Number of retries after a failed download. It has no effect as long as there is
        no address to download from.

    delay : float, default=1.0
        Time between two attempts, in s. It has no effect either.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (65062, 1), dtype float64
            Input voltage of the estimation record, in V: the first 75 % of the
            multisine.
        target : ndarray of shape (65062,), dtype float64
            Output voltage, in V.
        frame : DataFrame of shape (65062, 2) or None
            Data and target in one frame if ``as_frame`` is True.
        tests : :class:`~sklearn.utils.Bunch`
            The test records ``multisine`` (the last 25 %), ``arrow`` and
            ``no_extrapolation``, each a Bunch of data, target and frame.
        feature_names, target_names : list of str
            Names of the columns.
        sampling_time : float
            1 / 610.35 s.
        n_initialization : int
            50, the number of samples at the start of a record that errors leave out.
        DESCR : str
            Description of the data set.

    (data, target) : tuple if ``return_X_y`` is True
        As above.

    Raises
    ------
    OSError
        If the file is missing.

    ValueError
        If the SHA-256 of a file is not the expected one.

    ImportError
        If ``as_frame`` is True and pandas is not installed.

    References
    ----------
    .. [1] T. Wigren, J. Schoukens, "Three free data sets for development and
       benchmarking in nonlinear system identification", European Control Conference,
       Zurich, 2013, pp. 2933-2938.

    Examples
    --------
    >>> from skbayesnn.datasets import fetch_silverbox
    >>> silverbox = fetch_silverbox()  # doctest: +SKIP
    >>> list(silverbox.tests)  # doctest: +SKIP
    ['multisine', 'arrow', 'no_extrapolation']
    """
    record = _load_mat(SILVERBOX, data_home, download_if_missing, n_retries, delay)
    u, y = record["V1"].ravel(), record["V2"].ravel()

    multisine, n_estimation = slice(40650, 127400), 65062  # 75 %
    u_multisine, y_multisine = u[multisine], y[multisine]
    u_arrow, y_arrow = u[100:40575], y[100:40575]
    dataset = build_bunch(
        (u_multisine[:n_estimation], y_multisine[:n_estimation]),
        {
            "multisine": (u_multisine[n_estimation:], y_multisine[n_estimation:]),
            "arrow": (u_arrow, y_arrow),
            "no_extrapolation": (u_arrow[:32000], y_arrow[:32000]),
        },
        feature_name="input_voltage",
        target_name="output_voltage",
        sampling_time=1.0 / 610.35,
        descr="silverbox.rst",
        as_frame=as_frame,
    )
    return (dataset.data, dataset.target) if return_X_y else dataset


def _load_mat(remote, data_home, download_if_missing, n_retries, delay):
    """Return the variables of a checked MATLAB file."""
    content = load_file(
        remote,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    return loadmat(io.BytesIO(content))
