"""Benchmarks of images, loaded from files."""

import io

import numpy as np
from scipy.io import loadmat

from ._layouts import build_image_bunch
from ._remote_files import RemoteFile, load_file

IMAGE_SHAPE = (28, 28)
IDX_UNSIGNED_BYTES = 0x0800

MNIST_ADDRESSES = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


def _describe_mnist_file(filename, sha256):
    packed = f"{filename}.gz"
    urls = tuple(address + packed for address in MNIST_ADDRESSES)
    return RemoteFile(
        title="MNIST",
        folder="mnist",
        filename=filename,
        sha256=sha256,
        packed=packed,
        urls=urls,
        page=" or ".join(urls),
    )


# file of the images and file of the labels of each split
MNIST = {
    "train": (
        _describe_mnist_file(
            "train-images-idx3-ubyte",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _describe_mnist_file(
            "train-labels-idx1-ubyte",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        _describe_mnist_file(
            "t10k-images-idx3-ubyte",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _describe_mnist_file(
            "t10k-labels-idx1-ubyte",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}
CALTECH101_SILHOUETTES = RemoteFile(
    title="Caltech-101 Silhouettes",
    folder="caltech101_silhouettes",
    filename="caltech101_silhouettes_28_split1.mat",
    sha256="eb6735e8d84b1850fabc5590124aab1755e90c9fd28123585324398405e1e42a",
    packed="caltech101_silhouettes_28_split1.mat",
    urls=(
        "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat",
    ),
    page="https://people.cs.umass.edu/~marlin/data.shtml",
)
# prefix of the variables of each split in the file
CALTECH101_PREFIXES = {"train": "train", "validation": "val", "test": "test"}


def fetch_mnist(
    *,
    data_home=None,
    download_if_missing=True,
    return_X_y=False,
    n_retries=3,
    delay=1.0,
):
    """Load the MNIST images of handwritten digits (classification, density).

    ===============   =================
    Classes           10
    Training images   60000
    Test images       10000
    Pixels            28 x 28
    Values            integers, 0 - 255
    ===============   =================

    The digits are white (255) on black (0) [1]_. For models of binary data, the images
    are usually binarised by ``data > 127``.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data sets, in whose folder ``mnist`` the files
        ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
        ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte`` are looked up, as
        they are or compressed, with ``.gz`` appended. None stands for the environment
        variable ``SKBAYESNN_DATA`` or, if that is not set, for the folder
        ``skbayesnn`` in scikit-learn's data home.

    download_if_missing : bool, default=True
        If False, raise an OSError if a file is missing, instead of downloading it.
        The download has 12 MB; the decompressed files that are kept have 55 MB. It
        needs pooch and tqdm: ``pip install pooch tqdm``.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the training images.

    n_retries : int, default=3
        Number of retries after a failed download. Each tries two addresses.

    delay : float, default=1.0
        Time between two attempts, in s.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (60000, 784), dtype uint8
            Training images, one per row: ``row.reshape(28, 28)`` is the upright image.
        target : ndarray of shape (60000,), dtype int64
            The digits, 0 to 9.
        test : :class:`~sklearn.utils.Bunch`
            The test images, a Bunch of data, of shape (10000, 784), and target.
        image_shape : tuple of int
            (28, 28), height and width.
        DESCR : str
            Description of the data set.

    (data, target) : tuple if ``return_X_y`` is True
        As above.

    Raises
    ------
    OSError
        If a file is missing and is not downloaded, or the download fails.

    ValueError
        If the SHA-256 of a decompressed file is not the expected one.

    ImportError
        If a package for the download is not installed.

    See Also
    --------
    fetch_caltech101_silhouettes : Binary images of the same size.

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied
       to document recognition", Proceedings of the IEEE, vol. 86, no. 11, 1998,
       pp. 2278-2324.

    Examples
    --------
    >>> from skbayesnn.datasets import fetch_mnist
    >>> mnist = fetch_mnist()  # doctest: +SKIP
    >>> mnist.data.shape, mnist.test.target.shape  # doctest: +SKIP
    ((60000, 784), (10000,))
    >>> X = mnist.data > 127  # doctest: +SKIP
    """
    options = {
        "data_home": data_home,
        "download_if_missing": download_if_missing,
        "n_retries": n_retries,
        "delay": delay,
    }
    splits = {}
    for name, (images, labels) in MNIST.items():
        data = _read_idx(load_file(images, **options), IMAGE_SHAPE, images.filename)
        target = _read_idx(load_file(labels, **options), (), labels.filename)
        splits[name] = (data.reshape(len(data), -1), target.astype(np.int64))
    if return_X_y:
        return splits["train"]
    return build_image_bunch(splits, image_shape=IMAGE_SHAPE, descr="mnist.rst")


def fetch_caltech101_silhouettes(
    *,
    data_home=None,
    download_if_missing=True,
    return_X_y=False,
    n_retries=3,
    delay=1.0,
):
    """Load the Caltech-101 Silhouettes (classification, density).

    =================   ===============
    Classes             101
    Training images     4100
    Validation images   2264
    Test images         2307
    Pixels              28 x 28
    Values              integers, 0 - 1
    =================   ===============

    Outlines of the objects in the images of Caltech-101, filled and scaled down [1]_.
    The object is 0, the background 1.

    The file stores the pixels of an image column by column. Here they are in the
    usual order, row by row.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data sets, in which
        ``caltech101_silhouettes/caltech101_silhouettes_28_split1.mat`` is looked up.
        None stands for the environment variable ``SKBAYESNN_DATA`` or, if that is not
        set, for the folder ``skbayesnn`` in scikit-learn's data home.

    download_if_missing : bool, default=True
        If False, raise an OSError if the file is missing, instead of downloading it.
        A download needs pooch and tqdm: ``pip install pooch tqdm``.

    return_X_y : bool, default=False
        If True, return only ``(data, target)`` of the training images.

    n_retries : int, default=3
        Number of retries after a failed download.

    delay : float, default=1.0
        Time between two attempts, in s.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : ndarray of shape (4100, 784), dtype uint8
            Training images, one per row: ``row.reshape(28, 28)`` is the upright image.
        target : ndarray of shape (4100,), dtype int64
            The classes, 1 to 101 as in the file.
        validation : :class:`~sklearn.utils.Bunch`
            The validation images, a Bunch of data, of shape (2264, 784), and target.
        test : :class:`~sklearn.utils.Bunch`
            The test images, a Bunch of data, of shape (2307, 784), and target.
        image_shape : tuple of int
            (28, 28), height and width.
        target_names : list of str
            Names of the 101 classes in order: class ``k`` is
            ``target_names[k - 1]``.
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
        If a package for the download is not installed.

    See Also
    --------
    fetch_mnist : Grey images of the same size.

    References
    ----------
    .. [1] B. M. Marlin, K. Swersky, B. Chen, N. de Freitas, "Inductive principles for
       restricted Boltzmann machine learning", International Conference on Artificial
       Intelligence and Statistics, 2010, pp. 509-516.

    Examples
    --------
    >>> from skbayesnn.datasets import fetch_caltech101_silhouettes
    >>> silhouettes = fetch_caltech101_silhouettes()  # doctest: +SKIP
    >>> silhouettes.data.shape, silhouettes.test.target.shape  # doctest: +SKIP
    ((4100, 784), (2307,))
    >>> silhouettes.target_names[silhouettes.target[0] - 1]  # doctest: +SKIP
    'lamp'
    """
    content = load_file(
        CALTECH101_SILHOUETTES,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    mat = loadmat(io.BytesIO(content))
    splits = {
        name: (
            _transpose_images(mat[f"{prefix}_data"]),
            mat[f"{prefix}_labels"].ravel().astype(np.int64),
        )
        for name, prefix in CALTECH101_PREFIXES.items()
    }
    if return_X_y:
        return splits["train"]
    return build_image_bunch(
        splits,
        image_shape=IMAGE_SHAPE,
        target_names=[str(name.item()) for name in mat["classnames"].ravel()],
        descr="caltech101_silhouettes.rst",
    )


def _read_idx(content, sample_shape, filename):
    """Return a writeable copy of the array in an idx file of unsigned bytes.

    The header consists of a magic number, which holds the type and the number of
    dimensions, and of the size of each dimension, all big-endian four-byte integers.
    """
    n_dims = 1 + len(sample_shape)
    n_header = 4 * (1 + n_dims)
    magic, *shape = np.frombuffer(content[:n_header], dtype=">i4").tolist()
    values = np.frombuffer(content, dtype=np.uint8, offset=n_header)
    if (
        magic != IDX_UNSIGNED_BYTES + n_dims
        or tuple(shape[1:]) != sample_shape
        or values.size != np.prod(shape)
    ):
        raise ValueError(
            f"MNIST: {filename} is not an idx file of unsigned bytes of shape "
            f"({', '.join(map(str, ('n', *sample_shape)))})."
        )
    return values.reshape(shape).copy()


def _transpose_images(columns):
    """Return, row by row, images that are stored column by column."""
    images = columns.reshape(-1, *IMAGE_SHAPE[::-1]).transpose(0, 2, 1)
    return np.ascontiguousarray(images).reshape(len(images), -1)
