"""``shortlist export``: a model for programs that run without Python."""

from shortlist.cli.models import load_model
from shortlist.cli.options import OutputOptions, Precision
from shortlist.cli.output import check_output, readable_size, report, written_to


def export(
    *,
    model: str,
    file: str,
    k: int | None = None,
    precision: Precision = Precision.float32,
    opset: int = 17,
    output: OutputOptions,
) -> None:
    """Export a model to ONNX, to predict without Python.

    The ONNX model takes the features, X, and answers with label, scores, probabilities (if the
    loss has them), topk_labels and topk_scores.

    Examples:
      shortlist export letter.model -o letter.onnx -k 3
    """
    from shortlist._files import atomic_write

    check_output(file, inputs=(model,), as_json=output.as_json)
    trained = load_model(model)
    from shortlist.onnx import to_onnx

    exported = to_onnx(trained, k=k, dtype=precision, opset=opset)  # type: ignore[arg-type]
    with written_to(file) as place, atomic_write(place) as part:
        part.write_bytes(exported.SerializeToString())
    answers = [answer.name for answer in exported.graph.output]
    facts = {entry.key: entry.value for entry in exported.metadata_props}
    made = {"model": model, "file": file, "opset": opset, "outputs": answers, "metadata": facts}
    lines = [
        f"{file}: {readable_size(exported.ByteSize())}, {facts['loss']} with "
        f"C={float(facts['C']):.4g}, shortlists of {facts['shortlist_length']}",
        f"outputs: {', '.join(answers)}",
    ]
    report(output, "export", made, lines, beside=file)
