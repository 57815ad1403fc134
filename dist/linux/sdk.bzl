"""The SDK for Linux: the library and what C and C++ build systems need to find it."""

load("@bazel_skylib//rules:expand_template.bzl", "expand_template")
load("//dist:defs.bzl", "archive", "notices", "sbom")
load("//dist:version.bzl", "VERSION")

def linux_sdk(name, cpu, library, components, **kwargs):
    """Declares NAME, the archive libelizainference-VERSION-linux-CPU.tar.gz.

    Args:
      name: name of the target.
      cpu: x86_64 or arm64.
      library: the shared library.
      components: component targets: what is linked into it, and what built it.
      **kwargs: attributes common to all rules.
    """
    package = "libelizainference-linux-" + cpu
    folder = "libelizainference-%s-linux-%s" % (VERSION, cpu)
    notices(
        name = name + "_notices",
        components = components,
        # The wheel holds the same library.
        visibility = ["//python/wheel:__pkg__"],
    )
    sbom(
        name = name + "_sbom",
        components = components,
        files = {library: "lib/libelizainference.so"},
        package = package,
    )
    expand_template(
        name = name + "_pkg_config",
        out = name + "/elizainference.pc",
        substitutions = {"@VERSION@": VERSION},
        template = "//dist/linux:elizainference.pc.in",
    )
    expand_template(
        name = name + "_cmake_version",
        out = name + "/elizainference-config-version.cmake",
        substitutions = {"@VERSION@": VERSION},
        template = "//dist/linux:elizainference-config-version.cmake.in",
    )
    archive(
        name = name,
        out = folder + ".tar.gz",
        files = {
            library: "lib/libelizainference.so",
            ":%s_cmake_version" % name: "lib/cmake/elizainference/elizainference-config-version.cmake",
            ":%s_notices" % name: "share/doc/libelizainference/THIRD_PARTY_NOTICES.txt",
            ":%s_pkg_config" % name: "lib/pkgconfig/elizainference.pc",
            ":%s_sbom" % name: "share/doc/libelizainference/sbom.spdx.json",
            "//:LICENSE": "share/doc/libelizainference/LICENSE",
            "//dist/linux:elizainference-config.cmake": "lib/cmake/elizainference/elizainference-config.cmake",
            "//native/include:eliza-inference-ffi.h": "include/eliza-inference-ffi.h",
        },
        prefix = folder,
        **kwargs
    )
