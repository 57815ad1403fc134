"""Tests written for pytest, as py_test targets.

    pytest_test(
        name = "gate_test",
        srcs = ["gate_test.py"],
        deps = ["//third_party/python:hypothesis"],
    )

runs every test of its sources and nothing else. `--test_filter=EXPRESSION` is pytest's `-k`; further
arguments go to pytest, as in `./bazelw run //tests/text:gate_test -- --pdb`.
"""

load("@rules_python//python:defs.bzl", "py_test")

# A second thread gains nothing on a tiny model, and on a busy machine each step waits for whichever thread has no core.
_ENV = {"ELIZA_THREADS": "1"}

def pytest_test(name, srcs, data = [], deps = [], args = [], env = {}, size = "small", tags = [], **kwargs):
    """Declares a py_test that runs pytest on `srcs`.

    Helper modules belong in a py_library in `deps`; they are imported by their path from the
    workspace's root (`from tests.support import abi`).

    Args:
      name: name of the target.
      srcs: the test modules.
      data: files the tests read.
      deps: py_library targets; pytest is added. Property tests add //third_party/python:hypothesis.
      args: arguments of pytest.
      env: environment variables; $(rlocationpath LABEL) is expanded. ELIZA_THREADS is 1 unless it is here.
      size: size of the test, which sets its timeout.
      tags: tags of the target.
      **kwargs: other attributes of a py_test.
    """
    main = Label("//tests:pytest_main.py")
    py_test(
        name = name,
        size = size,
        srcs = srcs + [main],
        args = ["$(rootpath %s)" % src for src in srcs] + args,
        data = data,
        env = _ENV | env,
        # A folder is a package because it is in the tree, not because Bazel wrote an __init__.py into it.
        legacy_create_init = 0,
        main = main,
        tags = tags,
        deps = deps + [
            Label("//tests/support:sanitizers"),
            Label("//third_party/python:pytest"),
        ],
        **kwargs
    )
