"""What is compiled for."""

# The oldest that MLX's own build runs on.
TARGET = "arm64-apple-macosx14.0"
