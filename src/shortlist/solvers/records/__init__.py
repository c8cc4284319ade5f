"""What a run of training measured: its clock, evaluations, certificate and result."""
