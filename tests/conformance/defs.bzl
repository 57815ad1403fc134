"""The conformance suite on one backend."""

load("//tests:pytest.bzl", "pytest_test")

_SUITES = [
    "cancel",
    "context",
    "generation",
    "lifetime",
    "options",
]

def conformance_tests(name, backend, data, library = None, env = {}, tags = [], **kwargs):
    """Declares a test per part of the suite, NAME_PART, and NAME for all of them.

    Args:
      name: name of the targets.
      backend: the backend's name in backends.py, where its models and abilities are.
      data: the bundles of its models.
      library: a variant of //:elizainference that holds the backend; the default library where there is none.
      env: environment variables that need $(rlocationpath); the others are in backends.py.
      tags: tags of all of them.
      **kwargs: other attributes of the tests.
    """
    for suite in _SUITES:
        pytest_test(
            name = "%s_%s" % (name, suite),
            size = "medium",
            srcs = [suite + "_test.py"],
            data = data + [library or "//:elizainference"],
            env = env | {"CONFORMANCE_BACKEND": backend} | (
                {"ELIZA_INFERENCE_LIBRARY": "$(rlocationpath %s)" % library} if library else {}
            ),
            deps = [
                ":conformance",
                "//tests/llama_cpp:recall",
                "//tests/support:abi",
                "//tests/support:isolated",
                "//tests/support:memory",
                "//tests/support:models",
            ],
            tags = tags,
            **kwargs
        )
    native.test_suite(
        name = name,
        tags = tags,
        tests = ["%s_%s" % (name, suite) for suite in _SUITES],
    )
