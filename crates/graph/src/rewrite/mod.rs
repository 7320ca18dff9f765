//! Rules that turn a graph into an equal one that runs faster.
