"""``shortlist features``: what a frozen network makes of images, for a linear probe."""

import sys
from dataclasses import asdict

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import check_output, report


def features(
    *,
    network: str,
    source: str,
    batch_size: int = 64,
    workers: int = 0,
    image_size: int = 224,
    device: str | None = None,
    pool: str = "mean",
    file: str,
    labels: str | None = None,
    dtype: str = "float32",
    output: OutputOptions,
) -> None:
    """Run a frozen network over images and write its features, to train a classifier on.

    Examples:
      shortlist features torchvision:resnet50 photos/train -o train.npy
      shortlist train train.npy --labels train.labels.npy -o model -k 5
    """
    check_output(file, inputs=(network, source))
    if labels is not None:
        check_output(labels, "--labels", inputs=(network, source))
    if not file.endswith(".npy"):
        raise ValueError(f"-o {file}: the name must end in .npy")
    sys.path.insert(0, "")  # MODULE:FUNCTION may lie in the working directory
    from shortlist.torch import features_command

    try:
        written = features_command(
            network,
            source,
            file,
            labels=labels,
            batch_size=batch_size,
            num_workers=workers,
            image_size=image_size,
            device=device,
            dtype=dtype,  # type: ignore[arg-type]
            pool=pool,  # type: ignore[arg-type]
            progress=False if output.quiet else None,
        )
    except TypeError as error:
        # The user's function has returned something else than a network or a data set.
        raise ValueError(str(error)) from error
    lines = [
        f"{written.features}: {written.n_samples} examples, {written.n_features} features "
        f"({written.seconds:.1f} s)",
        f"labels: {written.labels or 'none'}",
    ]
    report(output, "features", asdict(written), lines)
