"""The version of this package, MODULE.bazel's."""

__version__ = "0.1.0"
