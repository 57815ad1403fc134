"""races.cc as a test."""

load("//tests:pytest.bzl", "pytest_test")

def races_test(name, program, counts, model = None, data = [], env = {}, size = "large", **kwargs):
    """Declares a test that runs a program of races.cc and checks what it met.

    Args:
      name: name of the target.
      program: the program.
      counts: "CANCELS CLOSES ROUNDS".
      model: a model of //tests/models; the alphabet, which has none, where it is left out.
      data: files that it reads besides.
      env: environment variables.
      size: size of the test, which sets its timeout.
      **kwargs: attributes common to all tests.
    """
    pytest_test(
        name = name,
        size = size,
        srcs = ["races_test.py"],
        args = ["-rP"],  # what was met, for tests/reliability/table.py
        data = data + [program] + (["//tests/models:" + model] if model else []),
        env = {
            "COUNTS": counts,
            "MODEL": model or "",
            "RACES": "$(rlocationpath %s)" % program,
        } | env,
        deps = [
            "//tests/support:models",
            "//tests/support:runfile",
        ],
        **kwargs
    )
