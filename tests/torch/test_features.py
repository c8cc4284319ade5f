"""Features of a network: complete files or none, from arrays, loaders and folders of images."""

import pickle
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from shortlist import TopKClassifier
from shortlist.torch import ImageFolder, extract_features, features_command
from shortlist.torch.backbones import load_backbone
from shortlist.torch.images import preprocess


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.ReLU(), torch.nn.Dropout(0.5)
    )


@pytest.fixture
def dataset():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(25, 3, 9, 9, generator=generator)
    return TensorDataset(images, torch.randint(4, (25,), generator=generator))


def test_rows_are_the_models_outputs(dataset, tmp_path):
    model = network().train()
    files = extract_features(model, dataset, tmp_path / "x.npy", batch_size=7)
    rows = np.load(files.features, mmap_mode="r")
    assert isinstance(rows, np.memmap)
    assert model.training  # restored
    expected = model.eval()(dataset.tensors[0]).flatten(1).detach()
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.load(files.labels), dataset.tensors[1])
    assert files.labels == tmp_path / "x.labels.npy"
    assert (files.n_samples, files.n_features) == rows.shape == (25, 64)


def test_pooling_and_type(dataset, tmp_path):
    files = extract_features(
        network(), dataset, tmp_path / "x.npy", pool="mean", dtype="float16", batch_size=4
    )
    rows = np.load(files.features)
    assert rows.dtype == np.float16
    expected = network().eval()(dataset.tensors[0]).mean((2, 3)).detach()
    np.testing.assert_allclose(rows, expected, atol=2e-3)


def test_loaders_and_plain_iterables_without_labels(dataset, tmp_path):
    loader = DataLoader(dataset, batch_size=10, drop_last=True)
    assert extract_features(network(), loader, tmp_path / "a.npy").n_samples == 20
    batches = (part for part in dataset.tensors[0].split(6))
    files = extract_features(network(), batches, tmp_path / "b.npy")
    assert files.labels is None
    assert np.load(files.features).shape == (25, 64)


def test_class_names_of_any_length(dataset, tmp_path):
    names = ["a", "bee", "centipede", "d"]
    files = extract_features(network(), dataset, tmp_path / "x.npy", classes=names, batch_size=2)
    expected = [names[label] for label in dataset.tensors[1]]
    assert np.load(files.labels).tolist() == expected


def test_label_types_of_any_batch(tmp_path):
    batches = [(torch.ones(2, 3), ["ox", "ant"]), (torch.ones(1, 3), ["elephant"])]
    files = extract_features(torch.nn.Identity(), batches, tmp_path / "x.npy")
    assert np.load(files.labels).tolist() == ["ox", "ant", "elephant"]
    batches = [(torch.ones(2, 3), torch.tensor([1, 2])), (torch.ones(1, 3), torch.tensor([0.5]))]
    files = extract_features(torch.nn.Identity(), batches, tmp_path / "x.npy")
    assert np.load(files.labels).tolist() == [1, 2, 0.5]


class _Fails(torch.nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error, self.calls = error, 0

    def forward(self, batch):
        self.calls += 1
        if self.calls == 3:
            raise self.error
        return batch.flatten(1)


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyboardInterrupt()])
def test_an_interruption_leaves_no_trace(dataset, tmp_path, error):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(type(error)):
        extract_features(_Fails(error), dataset, tmp_path / "x.npy", batch_size=5)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.zeros(3))


SLOW = """
import sys, time
import torch
from shortlist.torch import extract_features

def batches():
    while True:
        yield torch.ones(2, 3), torch.zeros(2, dtype=int)
        time.sleep(0.02)

extract_features(torch.nn.Identity(), batches(), sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_no_trace(tmp_path, name):
    np.save(tmp_path / "x.npy", np.zeros(3))
    process = subprocess.Popen([sys.executable, "-c", SLOW, tmp_path / "x.npy"])
    try:
        # One part for the features and one for the labels: it is at work.
        while len(list(tmp_path.glob(".*.part"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(getattr(signal, name))
        assert process.wait(timeout=60) == 128 + getattr(signal, name)
    finally:
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.zeros(3))


def test_signal_handlers_are_as_before(dataset, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    extract_features(network(), dataset, tmp_path / "x.npy")
    assert signal.getsignal(signal.SIGTERM) is before


def test_progress_is_shown_when_asked(dataset, tmp_path, capsys):
    extract_features(network(), dataset, tmp_path / "x.npy", batch_size=5, progress=True)
    captured = capsys.readouterr()
    assert captured.err == "features: batch 5 is finished; 5 of 5 done\n"
    assert captured.out == ""
    extract_features(network(), dataset, tmp_path / "x.npy", batch_size=5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda x: (x, x), TypeError, "must return a tensor, got tuple"),
        (lambda x: x.sum(), ValueError, "one row an example"),
        (lambda x: x.flatten(1)[:2], ValueError, "gave 2 rows for a batch of 5"),
        (lambda x: x.flatten(1) / 0, ValueError, "not finite in float32, in rows 0 to 4"),
        (lambda x: x[:, :, : int(x[0, 0, 0, 0] > 0) + 1], ValueError, "the same length"),
    ],
)
def test_unusable_outputs_are_explained(dataset, tmp_path, model, error, message):
    class Wrapped(torch.nn.Module):
        def forward(self, batch):
            return model(batch)

    with pytest.raises(error, match=message):
        extract_features(Wrapped(), dataset, tmp_path / "x.npy", batch_size=5)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_named(dataset, tmp_path):
    with pytest.raises(ValueError, match="pool must be"):
        extract_features(network(), dataset, tmp_path / "x.npy", pool="max")
    with pytest.raises(ValueError, match="dtype must be"):
        extract_features(network(), dataset, tmp_path / "x.npy", dtype="int8")
    with pytest.raises(ValueError, match="no examples"):
        extract_features(network(), [], tmp_path / "x.npy")
    with pytest.raises(ValueError, match="these have 3 parts"):
        extract_features(network(), [(1, 2, 3)], tmp_path / "x.npy")
    with pytest.raises(ValueError, match="cannot go to the same file"):
        extract_features(network(), dataset, tmp_path / "x.npy", labels_path=tmp_path / "x.npy")
    with pytest.raises(ValueError, match="device 'cuda:9999' cannot be used"):
        extract_features(network(), dataset, tmp_path / "x.npy", device="cuda:9999")
    large = [torch.full((2, 3), 1e6)]
    with pytest.raises(ValueError, match="not finite in float16"):
        extract_features(torch.nn.Identity(), large, tmp_path / "x.npy", dtype="float16")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    root = tmp_path / "images"
    for name, level in (("dark", 40), ("light", 210)):
        for i in range(6):
            path = root / name / f"{i}.{'png' if i % 2 else 'jpg'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.normal(level, 20, size=(20 + i, 30, 3)).clip(0, 255).astype(np.uint8)
            image.fromarray(pixels).save(path)
    (root / "notes.txt").write_text("not an image")
    return root


def test_folders_are_classes(folder):
    data = ImageFolder(folder)
    assert data.classes == ["dark", "light"]
    assert len(data) == 12
    tensor, label = data[7]
    assert tensor.shape == (3, 224, 224)
    assert (label, data.paths[7].parent.name) == (1, "light")
    assert data[0][0].mean() < tensor.mean()
    unlabelled = ImageFolder(folder / "dark")
    assert unlabelled.classes == []
    assert unlabelled[0].shape == (3, 224, 224)


def test_preprocessing_crops_the_centre():
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((80, 200, 3), np.uint8)
    pixels[:, 60:140] = 255
    tensor = preprocess(image.fromarray(pixels), 32)
    white = (1 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    torch.testing.assert_close(tensor[:, 16, 16], white, atol=1e-5, rtol=0)
    torch.testing.assert_close(tensor[:, 16, 0], white, atol=1e-5, rtol=0)


def test_bad_folders_are_explained(folder, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        ImageFolder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no images"):
        ImageFolder(tmp_path / "empty")
    (folder / "dark" / "0.jpg").write_bytes(b"rubbish")
    with pytest.raises(ValueError, match=r"dark/0\.jpg: cannot be read as an image"):
        ImageFolder(folder)[0]
    with monkeypatch.context() as patch:
        patch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 100)
        with pytest.raises(ValueError, match=r"cannot be read as an image .*limit"):
            ImageFolder(folder)[1]
    # From a loading process, too, it is one line.
    with pytest.raises(ValueError, match=r"^\S+dark/0\.jpg: cannot be read as an image [^\n]+$"):
        extract_features(network(), ImageFolder(folder), tmp_path / "x.npy", num_workers=1)
    (folder / "stray.png").write_bytes(b"")
    with pytest.raises(ValueError, match="both of its own"):
        ImageFolder(folder)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_from_a_folder_to_a_classifier(folder, tmp_path):
    traced = torch.jit.trace(network().eval(), torch.zeros(1, 3, 32, 32))
    torch.jit.save(traced, tmp_path / "net.pt")
    files = features_command(
        str(tmp_path / "net.pt"), str(folder), tmp_path / "x.npy", image_size=32, dtype="float64"
    )
    X, y = np.load(files.features, mmap_mode="r"), np.load(files.labels)
    assert X.shape == (12, 4)
    assert set(y) == {"dark", "light"}
    model = TopKClassifier("smooth_hinge", C=100.0, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_networks_and_data_by_import(dataset, tmp_path, monkeypatch):
    module = types.ModuleType("my_nets")
    module.network, module.data, module.nothing = network, lambda: dataset, lambda: 3
    monkeypatch.setitem(sys.modules, "my_nets", module)
    files = features_command("my_nets:network", "my_nets:data", tmp_path / "x.npy")
    assert np.load(files.features).shape == (25, 4)
    np.save(tmp_path / "inputs.npy", dataset.tensors[0].numpy())
    again = features_command("my_nets:network", str(tmp_path / "inputs.npy"), tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(again.features), np.load(files.features))
    assert again.labels is None
    module.examples = lambda: list(zip(*dataset.tensors, strict=True))
    listed = features_command("my_nets:network", "my_nets:examples", tmp_path / "l.npy")
    np.testing.assert_array_equal(np.load(listed.features), np.load(files.features))
    np.testing.assert_array_equal(np.load(listed.labels), dataset.tensors[1])
    # Loading processes that are not forked get a copy.
    assert pickle.loads(pickle.dumps(load_backbone("my_nets:network", 32)[1])).keywords
    with pytest.raises(ValueError, match="image_size must be at least 1"):
        load_backbone("my_nets:network", 0)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ImportError, match=r"pip install torchvision$"):
        load_backbone("torchvision:resnet50")
    for model, error, message in [
        ("my_nets:nothing", TypeError, r"torch\.nn\.Module, got int"),
        ("my_nets:missing", ValueError, "has no 'missing'"),
        ("no_such_module:f", ValueError, "cannot import"),
        ("resnet18", ValueError, "timm:NAME"),
        ("gone.pt", FileNotFoundError, "no such file"),
    ]:
        with pytest.raises(error, match=message):
            features_command(model, "my_nets:data", tmp_path / "z.npy")
    torch.save(network().state_dict(), tmp_path / "state.pt")
    with pytest.raises(ValueError, match="not a TorchScript file"):
        features_command(str(tmp_path / "state.pt"), "my_nets:data", tmp_path / "z.npy")
