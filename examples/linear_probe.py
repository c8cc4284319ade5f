"""A linear probe on a frozen network: features to disk, a certified classifier, a head again.

    python examples/linear_probe.py

Any backbone serves in place of the small random one below: a torchvision or timm model without its
classifier, over a folder of images (``shortlist.torch.ImageFolder``).
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from shortlist import TopKClassifier
from shortlist.datasets import load_letter
from shortlist.torch import extract_features, to_linear


def main():
    torch.manual_seed(0)
    letter = load_letter(dtype="float32")
    backbone = nn.Sequential(nn.Linear(16, 256), nn.ReLU())

    with tempfile.TemporaryDirectory() as folder:
        parts = {}
        for name, X, y in [
            ("train", letter.X_train, letter.y_train),
            ("test", letter.X_test, letter.y_test),
        ]:
            data = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
            files = extract_features(backbone, data, Path(folder) / f"{name}.npy", batch_size=512)
            print(f"{name}: {files.n_samples} x {files.n_features} features")
            parts[name] = np.load(files.features, mmap_mode="r"), np.load(files.labels)

        probe = TopKClassifier("smooth_hinge", k=3, C=1.0, random_state=0).fit(*parts["train"])
        print(f"relative duality gap {probe.result_.relative_gap:.1e}")
        print(f"top-3 accuracy of the probe: {probe.score(*parts['test']):.2%}")

    network = nn.Sequential(backbone, to_linear(probe))
    with torch.inference_mode():
        best = network(torch.from_numpy(letter.X_test)).topk(3).indices
    hits = (best == torch.from_numpy(letter.y_test).unsqueeze(1)).any(1)
    print(f"top-3 accuracy of the network with the probe as its head: {hits.float().mean():.2%}")


if __name__ == "__main__":
    main()
