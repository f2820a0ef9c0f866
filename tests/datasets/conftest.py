"""A machine without a data home, and a server in place of the addresses."""

import pytest
from loopback import run_server


@pytest.fixture
def no_home(monkeypatch):
    monkeypatch.delenv("SKBAYESNN_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with run_server() as server:
        yield server


@pytest.fixture
def downloader():
    pytest.importorskip("pooch")
    pytest.importorskip("tqdm")
