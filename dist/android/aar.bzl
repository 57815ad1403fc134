"""The AAR: what Gradle takes for apps in Kotlin, Java and C++."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("//dist:defs.bzl", "archive", "notices", "sbom")
load("//dist:version.bzl", "VERSION")

# What the libraries are built for; platforms/toolchains/android says the same to the compiler.
_API = 26
_NDK = 28

_PREFAB = "prefab/modules/elizainference/"

def _json(name, content, **kwargs):
    write_file(
        name = name,
        out = name + ".json",
        content = [
            json.encode_indent(content, indent = "  "),
            "",
        ],
        **kwargs
    )
    return ":" + name

def android_aar(name, out, libraries, bridges, components, tags = [], **kwargs):
    """Declares NAME, an AAR with the library for C++ (Prefab) and, with its JNI bridge, for Kotlin and Java.

    Args:
      name: name of the target.
      out: the file.
      libraries: {ABI, as Android calls it: the shared library}.
      bridges: {ABI: its libelizainference_jni.so}.
      components: component targets: what is linked into the libraries, and what built them.
      tags: of the target, and of what it is made of.
      **kwargs: attributes common to all rules.
    """
    files = {
        "//dist/android:AndroidManifest.xml": "AndroidManifest.xml",
        "//dist/android:classes": "classes.jar",
        "//dist/android:proguard.txt": "proguard.txt",
        "//:LICENSE": "LICENSE",
        "//native/include:eliza-inference-ffi.h": _PREFAB + "include/eliza-inference-ffi.h",
    }
    compiled = {"//dist/android:classes": "classes.jar"}
    for abi in libraries:
        compiled[libraries[abi]] = "jni/%s/libelizainference.so" % abi
        compiled[bridges[abi]] = "jni/%s/libelizainference_jni.so" % abi
        folder = "%slibs/android.%s" % (_PREFAB, abi)
        files[libraries[abi]] = "jni/{0}/libelizainference.so {1}/libelizainference.so".format(abi, folder)
        files[bridges[abi]] = "jni/%s/libelizainference_jni.so" % abi
        files[_json(
            "%s_abi_%s" % (name, abi),
            # No STL: it is linked in, and nothing of it is in the header.
            {"abi": abi, "api": _API, "ndk": _NDK, "static": False, "stl": "none"},
            tags = tags,
        )] = folder + "/abi.json"
    files[_json(
        name + "_prefab",
        {"dependencies": [], "name": "elizainference", "schema_version": 2, "version": VERSION},
        tags = tags,
    )] = "prefab/prefab.json"
    files[_json(
        name + "_module",
        {"android": {}, "export_libraries": []},
        tags = tags,
    )] = _PREFAB + "module.json"
    notices(
        name = name + "_notices",
        components = components,
        tags = tags,
    )
    sbom(
        name = name + "_sbom",
        components = components,
        files = compiled,
        package = "libelizainference-android",
        tags = tags,
    )
    archive(
        name = name,
        out = out,
        files = files | {
            ":%s_notices" % name: "THIRD_PARTY_NOTICES.txt",
            ":%s_sbom" % name: "sbom.spdx.json",
        },
        tags = tags,
        **kwargs
    )
