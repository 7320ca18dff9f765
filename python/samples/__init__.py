"""The sample models: one module per family, each with `build(repository)`."""
