"""The Java Development Kit of this machine.

That of JAVA_HOME, where it is set, else of the javac on PATH, else one below /usr/lib/jvm.

rules_java would download one. What we compile is a handful of classes, for which any JDK from 11 on does. @jdk has

    load("@jdk//:jdk.bzl", "JAVA_HOME", "NEEDS_JDK")

NEEDS_JDK is for target_compatible_with: on a machine without a JDK `//...` skips such targets, and asking for one by
name is an error that names a constraint, no_jdk_11_or_newer_found_set_JAVA_HOME. @jdk//:jni is <jni.h>.
"""

_OLDEST = 11

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

# What says which JDK it is: its name and version.
exports_files(["release"])

cc_library(
    name = "jni",
    hdrs = {headers},
    includes = {includes},
)

constraint_setting(name = "jdk")

# No platform has it: who needs it cannot be built.
constraint_value(
    name = "no_jdk_11_or_newer_found_set_JAVA_HOME",
    constraint_setting = ":jdk",
)
"""

_JDK = '''\
"""Where the JDK of this machine is."""

JAVA_HOME = %s

NEEDS_JDK = %s
'''

def _candidates(rctx):
    home = rctx.getenv("JAVA_HOME")
    if home:
        return [rctx.path(home)]
    javac = rctx.which("javac")
    homes = [javac.realpath.dirname.dirname] if javac else []
    everywhere = rctx.path("/usr/lib/jvm")
    if everywhere.exists:
        homes += sorted(everywhere.readdir(), key = str)
    return homes

def _is_jdk(rctx, home):
    for part in ["bin/java", "bin/javac", "include/jni.h", "release"]:
        if not home.get_child(part).exists:
            return False
    result = rctx.execute([home.get_child("bin/javac"), "-version"])

    # "javac 17.0.12"; before 9 it was "javac 1.8.0".
    words = (result.stdout + result.stderr).strip().split(" ")
    version = words[1].split(".")[0].split("-")[0] if len(words) > 1 else ""
    return result.return_code == 0 and version.isdigit() and int(version) >= _OLDEST

def _jdk_impl(rctx):
    home = None
    for candidate in _candidates(rctx):
        if _is_jdk(rctx, candidate):
            home = candidate
            break

    headers, includes = [], []
    if home:
        machine = "include/darwin" if rctx.os.name.startswith("mac") else "include/linux"
        headers, includes = ["include/jni.h", machine + "/jni_md.h"], ["include", machine]
        for file in headers + ["release"]:
            rctx.symlink(home.get_child(file), file)
    else:
        rctx.file("release", "")
    rctx.file("BUILD.bazel", _BUILD.format(headers = headers, includes = includes))
    rctx.file("jdk.bzl", _JDK % (
        repr(str(home) if home else ""),
        "[]" if home else '[Label("//:no_jdk_11_or_newer_found_set_JAVA_HOME")]',
    ))

jdk = repository_rule(
    implementation = _jdk_impl,
    configure = True,
    doc = "The JDK of this machine, or a repository that says there is none.",
    environ = [
        "JAVA_HOME",
        "PATH",
    ],
    local = True,
)

def _java_impl(mctx):
    jdk(name = "jdk")
    return mctx.extension_metadata(reproducible = True)

java = module_extension(
    doc = "Declares @jdk.",
    implementation = _java_impl,
)
