"""Files from PyPI as external repositories: pinned by sha256, fetched with the user's own pip.

pip knows the user's index, mirror, proxy and certificates; Bazel's downloader knows none of them.
Nothing is installed: wheels and source archives are only unpacked. A repository is fetched when a
target in it is first needed.
"""

# -- Shared with npm.bzl --------------------------------------------------------------------------

def host_name(rctx):
    """Names the machine that fetches.

    Args:
      rctx: the repository_ctx.

    Returns:
      `linux_x86_64`, `linux_aarch64`, `macos_x86_64`, `macos_aarch64`, or the like.
    """
    os = "macos" if rctx.os.name.startswith("mac") else rctx.os.name.split(" ")[0]
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(rctx.os.arch, rctx.os.arch)
    return "%s_%s" % (os, arch)

def own_name(rctx):
    """Names a repository as BUILD files do: `llama_cpp`, not `_main~third_party~llama_cpp`."""
    return rctx.attr.name.replace("+", "~").split("~")[-1]

def for_host(rctx, what, choices):
    """Picks what was built for the machine that fetches.

    Args:
      rctx: the repository_ctx.
      what: the package, for the error message.
      choices: {a host_name(): "VALUE SHA256"}.

    Returns:
      (VALUE, SHA256).
    """
    host = host_name(rctx)
    if host not in choices:
        fail("@%s: %s is pinned for %s, and this machine is %s. Add its file to third_party/extensions.bzl, or leave out the targets that need it." % (
            own_name(rctx),
            what,
            ", ".join(sorted(choices)),
            host,
        ))
    value, sha256 = choices[host].split(" ")
    return value, sha256

# -- pip ------------------------------------------------------------------------------------------

def _advice(said):
    if "No module named pip" in said:
        return "This python3 has no pip. Install it (on Debian and Ubuntu: apt install python3-pip)."
    if "DO NOT MATCH" in said:
        return "The index served another file than the one pinned in third_party/. Do not build with it: find out what rewrites packages on the way."
    if "from versions: none" in said:
        return "pip found nothing of that name: its index cannot be reached, or does not have it. `python3 -m pip config list` and the PIP_* variables show which index that is."
    if "No matching distribution" in said:
        return "The index that pip uses does not offer this version. `python3 -m pip config list` and the PIP_* variables show which index that is."
    return "pip could not reach its index. Check the network and `python3 -m pip config list`; the same command line works outside Bazel."

def pip_download(rctx, what, requirements, arguments):
    """Downloads what a requirements file pins.

    Args:
      rctx: the repository_ctx.
      what: what it is, for progress and errors.
      requirements: path of the requirements file, hashes included.
      arguments: further arguments of `pip download`.

    Returns:
      The paths of the downloaded files. The caller deletes their folder, `download`.
    """
    python = rctx.which("python3")
    if not python:
        fail("@%s: there is no python3 on PATH, and its pip fetches %s. Install Python 3.10 or newer with pip." % (own_name(rctx), what))

    rctx.report_progress("pip download " + what)
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--requirement", requirements, "--dest", "download"] + arguments
    result = rctx.execute(
        command,
        # Some people forbid pip outside a virtual environment, lest it install something there.
        environment = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "0"},
        timeout = 3600,
    )
    if result.return_code:
        said = result.stderr + result.stdout

        # A line for each place of the user's that does not hold the package hides the error.
        said = "\n".join([line for line in said.splitlines() if not line.startswith("WARNING: Location ")])
        fail("\n".join([
            "@%s: could not fetch %s." % (own_name(rctx), what),
            _advice(said),
            "The command was: " + " ".join([str(word) for word in command]),
            "pip said:",
            said or "(nothing; exit code %d, or no answer within an hour)" % result.return_code,
        ]))
    return rctx.path("download").readdir()

def unpack(rctx, archive, output = "", strip_prefix = "", moves = {}):
    """Unpacks a wheel or a source archive.

    Args:
      rctx: the repository_ctx.
      archive: path of the file.
      output: the folder to unpack into.
      strip_prefix: the folder of the archive to unpack; what is outside is left out.
      moves: {path in the archive: path in `output`}.
    """

    # A wheel is a zip file, but Bazel goes by the file's name.
    is_wheel = archive.basename.endswith(".whl")
    if is_wheel:
        rctx.symlink(archive, archive.basename + ".zip")
        archive = rctx.path(archive.basename + ".zip")
    rctx.extract(archive, output = output, rename_files = moves, stripPrefix = strip_prefix)
    if is_wheel:
        rctx.delete(archive)

_SHA256 = """\
import hashlib, sys
digest = hashlib.sha256()
with open(sys.argv[1], "rb") as file:
    while chunk := file.read(1 << 20):
        digest.update(chunk)
print(digest.hexdigest())
"""

def _check(rctx, path, sha256):
    result = rctx.execute(["python3", "-c", _SHA256, rctx.path(path)])
    if result.return_code:
        fail("@%s: %s" % (own_name(rctx), result.stderr))
    if result.stdout.strip() != sha256:
        fail("@%s: %s has the sha256 %s, and %s was expected." % (own_name(rctx), path, result.stdout.strip(), sha256))

# -- pypi_archive ---------------------------------------------------------------------------------

def _pypi_archive_impl(rctx):
    attr = rctx.attr
    what = "%s %s" % (attr.package, attr.version)

    platform, sha256 = attr.platform, attr.sha256
    if attr.host_wheels:
        platform, sha256 = for_host(rctx, what, attr.host_wheels)

    arguments = ["--no-binary=" + attr.package] if attr.sdist else ["--only-binary=:all:"]
    if platform:
        arguments += ["--platform", platform]
    if attr.python_version:
        arguments += ["--python-version", attr.python_version]
    if attr.abi:
        arguments += ["--abi", attr.abi]

    rctx.file("requirements.txt", "%s==%s --hash=sha256:%s\n" % (attr.package, attr.version, sha256))
    files = pip_download(rctx, what, "requirements.txt", arguments)
    unpack(rctx, files[0], strip_prefix = attr.strip_prefix, moves = attr.moves)
    rctx.delete("download")
    rctx.delete("requirements.txt")

    for path, sha256 in attr.checks.items():
        _check(rctx, path, sha256)
    for patch in attr.patches:
        rctx.patch(patch, strip = 1)
    for label, path in attr.files.items():
        rctx.symlink(label, path)

    # Not every wheel records which of its files are programs.
    if attr.executables:
        result = rctx.execute(["chmod", "+x"] + attr.executables)
        if result.return_code:
            fail("@%s: %s" % (own_name(rctx), result.stderr))

    rctx.symlink(attr.build_file, "BUILD.bazel")

pypi_archive = repository_rule(
    implementation = _pypi_archive_impl,
    attrs = {
        "abi": attr.string(doc = "Python ABI tag of the wheel, where it has one, e.g. cp312."),
        "build_file": attr.label(
            allow_single_file = True,
            doc = "The BUILD file of the repository.",
            mandatory = True,
        ),
        "checks": attr.string_dict(
            doc = "{path: sha256}, for files whose hash is stated elsewhere in the workspace too.",
        ),
        "executables": attr.string_list(doc = "Files of the archive that are programs."),
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "{our file: its path in the repository}: files to add.",
        ),
        "host_wheels": attr.string_dict(
            doc = "For programs that run where they were fetched: {host: \"PLATFORM_TAG SHA256\"}, instead of `platform` and `sha256`. Hosts as host_name() names them.",
        ),
        "moves": attr.string_dict(
            doc = "{path in the archive: path in the repository}, for files that belong elsewhere.",
        ),
        "package": attr.string(doc = "Name on PyPI.", mandatory = True),
        "patches": attr.label_list(
            allow_files = True,
            doc = "Patches in git's format (-p1), applied in order.",
        ),
        "platform": attr.string(doc = "Platform tag of the wheel, where it has one."),
        "python_version": attr.string(doc = "Python version of the wheel, where it has one, e.g. 3.12."),
        "sdist": attr.bool(doc = "Whether to take the source archive rather than a wheel."),
        "sha256": attr.string(doc = "sha256 of the file as PyPI has it."),
        "strip_prefix": attr.string(doc = "Folder of the archive to unpack; what is outside is left out."),
        "version": attr.string(doc = "Exact version.", mandatory = True),
    },
    doc = "One file from PyPI, unpacked under a BUILD file of ours.",
)

# -- pypi_wheels ----------------------------------------------------------------------------------

_PY_LIBRARY = """
py_library(
    name = "{name}",
    srcs = glob(["{name}/**/*.py"]),
    data = glob(
        ["{name}/**"],
        exclude = [
            "{name}/**/*.py",
            # Labels have no spaces.
            "{name}/**/* *",
            # Speedups for one version of Python: these packages work without.
            "{name}/**/*.so",
        ],
        allow_empty = True,
    ),
    imports = ["{name}"],
    visibility = ["//visibility:public"],
)
"""

def _pypi_wheels_impl(rctx):
    requirements = rctx.path(rctx.attr.requirements)
    rctx.watch(requirements)

    # The target is named in full so that every host fetches the same files, those of the hashes.
    wheels = pip_download(rctx, "the packages of " + requirements.basename, requirements, [
        "--only-binary=:all:",
        "--platform=manylinux2014_x86_64",
        "--implementation=cp",
        "--python-version=3.12",
    ])

    build = ['load("@rules_python//python:defs.bzl", "py_library")\n']
    for wheel in sorted(wheels, key = lambda path: path.basename):
        name = wheel.basename.split("-")[0].lower()
        unpack(rctx, wheel, output = name)
        build.append(_PY_LIBRARY.format(name = name))
    rctx.delete("download")
    rctx.file("BUILD.bazel", "".join(build))

pypi_wheels = repository_rule(
    implementation = _pypi_wheels_impl,
    attrs = {
        "requirements": attr.label(
            allow_single_file = True,
            doc = "A requirements file: `name==version --hash=sha256:…` lines.",
            mandatory = True,
        ),
    },
    doc = """Python packages that run on any Python: one py_library each.

    A library is called as its wheel is (`markdown_it_py`) and has no deps: //third_party/python
    states them. Compiled parts of a wheel are left out.""",
)
