"""Ways to train and the choice between them; none of it knows a loss or a storage by name."""
