"""Benchmarks of density estimation: binary rows, loaded from files."""

import numpy as np

from ._layouts import build_split_bunch
from ._remote_files import RemoteFile, load_file

# the second address follows the repository, should the commit ever be gone
ADDRESSES = tuple(
    "https://raw.githubusercontent.com/UCLA-StarAI/Density-Estimation-Datasets/"
    f"{version}/datasets/"
    for version in ("37d53c1a8ba488d0a39e8c64bd3387577080b143", "master")
)
PAGE = "https://github.com/UCLA-StarAI/Density-Estimation-Datasets"

# names of the splits, and what they are called in the names of the files
SPLITS = {"train": "train", "validation": "valid", "test": "test"}

# SHA-256 of the training, validation and test file of each set
CHECKSUMS = {
    "accidents": (
        "a76648cf00772c275b4277b21d858e235e3c6d3c5ef30beeb4958189b6bed21c",
        "fd3a80a0f411f157cf3772a057d26980bb166cb89b10cafb818a53f1ec30d46d",
        "df3f1b6c035bf3e306a7d7127320e479d2546ce14a5d6d3043e6be0925b8b414",
    ),
    "baudio": (
        "b1ec73f4aa9d4ce48b465ded865cc3d22b3f68cf6258f9e15fbef8902138add1",
        "7164d8a4943f74953f0e982002d84693fdf483e17f69e7407dc939c5ce5622fe",
        "1474f3206f1f35e099803a0f40b0cd209bdc8d787825095ef6cb23fd87ed0d05",
    ),
    "bbc": (
        "a6f0ba467ebf502ba3b37caa1f20e43ff82664dcd580be92010106cf80fb0db1",
        "f6a37bd58cdb6745725628be19dfd3b9b795082faa8ca771b8f27dbf4a5ff46d",
        "7116fce92a1f3d610cee673a974c8c9895957ee07ce6f086b431ee296aa7734a",
    ),
    "bnetflix": (
        "73c87cf0635ec734cc0726a5c644b904ff33e81ea51f1049db0e77b787ebad7c",
        "7f0a3e597c6f305f707f9ecd2b2aa523c576cdb17fdc5d902fc832ebea5163de",
        "af73990782fd2f146d96059855c4f3bbb6a7a7caefc417ff620a3ed1415a2395",
    ),
    "dna": (
        "bb8de0ca4b6ad9b610036b7a302962ebecd4b504354b14c02c7d0bee48d207d9",
        "4b0fc89cda5eaf5c75926e281afb6af99de194a546070d5b81b524ba251f4f3f",
        "fec3ae7b26804020a9c43c99828441c5e08bb76b23719368a74ad2b09af99100",
    ),
    "jester": (
        "dd93578c3359d5b234bb278bf0901c5215d83b910f7d51d7c91951a0a4c244cd",
        "91df833941e189265345898d3f63211560c2456df599f34beee8e95381ee7524",
        "346044fb561cf18f284f7e9d5896178b03048991b6ebb6f7482885fccbc16082",
    ),
    "moviereview": (
        "195729f0d72e9707abb7a901b57193bd1b1c9108bb261202170eec6c7e5e2ed1",
        "d887c7726485ca46026c3c9ab511174679cd1c96443c5410ab24fb81c8be38e3",
        "9fea48ab7422d4a1c0b5d063311e6fd3104e59c11018276f7a9e909685a856d2",
    ),
    "mushrooms": (
        "465c712c066bbbee3ccceded24bbe42b4c379df67b524e28cce9bf3a8b83f27b",
        "5a067e6854df71623415e6adc8e913cbff766637a324788882ba800907aa5385",
        "313c5f04b5d0a18bee2f2ffa264be265d09f5362aad6f714637acd9552f81aa0",
    ),
    "nips": (
        "4d744cb1f2c725405bff6ef6878df06eafbbc2a91f0510e0f3d8a508b05ec7bb",
        "b06acd8e6a701d63d4e58b5076c11c59bcd0343fb9b1fbb5997459d3e6b8ca96",
        "48711bdaffbd43aa439679785e19d9cc80c64a157fa84eadc5dce60ee4edf7bc",
    ),
    "nltcs": (
        "e547a7aedad1dd2f7177030881ab1b92c7e24ae5464c71a0f1f89daecaf52b30",
        "93bbbf5c6febdc9bc6e5b5bfab636f4dc0685ab2896d24b23dd267794c3bfcf6",
        "f9ffa6b74b27dc03bee3203d157ee31079e80b13be40d0c0093d635c25aed523",
    ),
    "plants": (
        "1fb1219ff94068d12a563f9e81f8889a1885f41e867884cff608669300c6848f",
        "47834ed318b2d74f48e4b083226ef47fd446d41986012ceae19d230574821b34",
        "95f53c033cd1d86467aec2610dc5bfe014534206c2da4919f73bcab246ab8755",
    ),
    "pumsb_star": (
        "27e610b5f9f507f94ebf8a227f8b96cc59d7eed51e06ee5d2fe8353afbc1524c",
        "6a491d1ea64eb0249dddd168fdddeef88aa21001a933eb7309603b6466187af8",
        "b2da195314ac17f9d8d171743c5f98a28ea9583332a52d34aa228ff2e11aa8e7",
    ),
    "voting": (
        "113c35bd468a0bb97772623634c1b729b76ba90674e62b68c38fe8d5ac08b341",
        "391bad94351ac4565e2f6628c917607b6e82b82ebdc52d64dd8bfbebcdae12b7",
        "c77c851edfc1fd5c275e961de3530ae406fc5c3446fa305959720273a5bbe9c8",
    ),
}


def fetch_binary_benchmark(
    name,
    *,
    data_home=None,
    download_if_missing=True,
    return_splits=False,
    n_retries=3,
    delay=1.0,
):
    """Load a binary data set of the literature on density estimation.

    ================  ========  ===============  =================  ===========
    Name              Features  Training rows    Validation rows    Test rows
    ================  ========  ===============  =================  ===========
    ``accidents``     111       12758            1700               2551
    ``baudio``        100       15000            2000               3000
    ``bbc``           1058      1670             225                330
    ``bnetflix``      100       15000            2000               3000
    ``dna``           180       1600             400                1186
    ``jester``        100       9000             1000               4116
    ``moviereview``   1001      1600             150                250
    ``mushrooms``     112       2000             500                5624
    ``nips``          500       400              100                1240
    ``nltcs``         16        16181            2157               3236
    ``plants``        69        17412            2321               3482
    ``pumsb_star``    163       12262            1635               2452
    ``voting``        1359      1214             200                350
    ================  ========  ===============  =================  ===========

    These are sets on which tree models, sum-product networks and neural
    autoregressive models are compared by the mean log-likelihood of the test rows
    [1]_ [2]_ [3]_ [4]_. Their values are 0 and 1.

    Parameters
    ----------
    name : str
        Name of the set, as in the table.

    data_home : str or path-like, default=None
        Folder of the data sets, in whose folder ``binary`` the files
        ``NAME.train.data``, ``NAME.valid.data`` and ``NAME.test.data`` are looked up.
        None stands for the environment variable ``SKBAYESNN_DATA`` or, if that is not
        set, for the folder ``skbayesnn`` in scikit-learn's data home.

    download_if_missing : bool, default=True
        If False, raise an OSError if a file is missing, instead of downloading it.
        The files of a set have 0.7 to 5.3 MB. A download needs pooch and
        tqdm: ``pip install pooch tqdm``.

    return_splits : bool, default=False
        If True, return only the rows, ``(X_train, X_validation, X_test)``.

    n_retries : int, default=3
        Number of retries after a failed download. Each tries two addresses.

    delay : float, default=1.0
        Time between two attempts, in s.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (n_train, n_features), dtype uint8
            Training rows, of values 0 and 1.
        validation : :class:`~sklearn.utils.Bunch`
            A Bunch of data, the validation rows.
        test : :class:`~sklearn.utils.Bunch`
            A Bunch of data, the test rows.
        DESCR : str
            Description of the data sets.

    (X_train, X_validation, X_test) : tuple if ``return_splits`` is True
        As above.

    Raises
    ------
    OSError
        If a file is missing and is not downloaded, or the download fails.

    ValueError
        If there is no set of this name, or the SHA-256 of a file is not the expected
        one.

    ImportError
        If a package for the download is not installed.

    See Also
    --------
    fetch_caltech101_silhouettes : Binary images.
    fetch_mnist : Grey images of digits.

    References
    ----------
    .. [1] D. Lowd, J. Davis, "Learning Markov network structure with decision trees",
       IEEE International Conference on Data Mining, 2010.
    .. [2] J. Van Haaren, J. Davis, "Markov network structure learning: a randomized
       feature generation approach", AAAI Conference on Artificial Intelligence, 2012.
    .. [3] H. Larochelle, I. Murray, "The neural autoregressive distribution estimator",
       International Conference on Artificial Intelligence and Statistics, 2011.
    .. [4] J. Bekker, J. Davis, A. Choi, A. Darwiche, G. Van den Broeck, "Tractable
       learning for complex probability queries", NIPS, 2015.

    Examples
    --------
    >>> from skbayesnn.datasets import fetch_binary_benchmark
    >>> plants = fetch_binary_benchmark("plants")  # doctest: +SKIP
    >>> plants.data.shape, plants.test.data.shape  # doctest: +SKIP
    ((17412, 69), (3482, 69))
    """
    if name not in list(CHECKSUMS):
        known = ", ".join(map(repr, CHECKSUMS))
        raise ValueError(f"name must be one of {known}; got {name!r}.")
    splits = {}
    for split, remote in zip(SPLITS, _describe_files(name), strict=True):
        content = load_file(
            remote,
            data_home=data_home,
            download_if_missing=download_if_missing,
            n_retries=n_retries,
            delay=delay,
        )
        splits[split] = _parse_rows(content, remote)
    n_features = {rows.shape[1] for rows in splits.values()}
    if len(n_features) > 1:
        raise ValueError(
            f"{name}: the training, validation and test files have different numbers "
            f"of features: {', '.join(map(str, sorted(n_features)))}."
        )
    if return_splits:
        return tuple(splits.values())
    return build_split_bunch(splits, descr="binary_benchmark.rst")


def _describe_files(name):
    """The training, validation and test file of a set."""
    for part, sha256 in zip(SPLITS.values(), CHECKSUMS[name], strict=True):
        filename = f"{name}.{part}.data"
        yield RemoteFile(
            title=name,
            folder="binary",
            filename=filename,
            sha256=sha256,
            packed=filename,
            urls=tuple(f"{address}{name}/{filename}" for address in ADDRESSES),
            page=PAGE,
        )


def _parse_rows(content, remote):
    """Return the rows of a file: a line each, of single digits and commas.

    All lines have the same length, so that the characters form a matrix, in which
    digits and separators alternate.
    """
    characters = np.frombuffer(content, dtype=np.uint8)
    length = content.find(b"\n") + 1
    if length and len(content) % length == 0:
        lines = characters.reshape(-1, length)
        digits, separators = lines[:, ::2] - ord("0"), lines[:, 1::2]
        if (
            digits.shape == separators.shape
            and (separators[:, :-1] == ord(",")).all()
            and (separators[:, -1] == ord("\n")).all()
            and (digits <= 1).all()
        ):
            return digits
    raise ValueError(
        f"{remote.title}: {remote.filename} is not a table of 0 and 1, separated by "
        "commas, with the same number of values in each line."
    )
