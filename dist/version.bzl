"""The version of what is packaged: MODULE.bazel's, and the Python package's (a test compares the three)."""

VERSION = "0.1.0"
