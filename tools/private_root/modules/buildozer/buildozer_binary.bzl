"""The one thing of buildozer that Bazel's own tools load, doing nothing."""

buildozer_binary = module_extension(implementation = lambda _: None)
