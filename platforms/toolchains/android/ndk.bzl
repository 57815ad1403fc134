"""The Android NDK: that of ANDROID_NDK_HOME, where it is set, else Google's r28c, pinned.

Nothing looks for it before something is built for an Android platform, so a machine without one
builds everything else.
"""

_VERSION = "r28c"

# {host: sha256}. r28 is the first NDK that links for 16 KiB pages by itself.
_SHA256 = {
    "linux": "dfb20d396df28ca02a8c708314b814a4d961dc9074f9a161932746f815aa552f",
}

_URL = "https://dl.google.com/android/repository/android-ndk-%s-%s.zip"

_WAYS_OUT = "Set ANDROID_NDK_HOME to an NDK's folder (%s or newer), or build where %s can be reached."

def _ways_out(host):
    return _WAYS_OUT % (_VERSION, _URL % (_VERSION, host))

def _host(rctx):
    if rctx.os.name.startswith("mac"):
        return "darwin"
    return rctx.os.name.split(" ")[0]

def _download(rctx, host):
    if host not in _SHA256:
        fail("@android_ndk: no NDK is pinned for %s: set ANDROID_NDK_HOME to an NDK's folder (%s or newer)." % (host, _VERSION))
    result = rctx.download(
        allow_fail = True,
        output = "ndk.zip",
        sha256 = _SHA256[host],
        url = _URL % (_VERSION, host),
    )
    if not result.success:
        fail("@android_ndk: builds for Android need the NDK, which is not here and could not be downloaded. " + _ways_out(host))
    rctx.extract("ndk.zip", stripPrefix = "android-ndk-" + _VERSION, output = "ndk")
    rctx.delete("ndk.zip")

def _android_ndk_impl(rctx):
    host = _host(rctx)
    home = rctx.getenv("ANDROID_NDK_HOME")
    if home:
        rctx.symlink(home, "ndk")
    else:
        _download(rctx, host)

    # Google names it after the machines it was built on, which are x86-64 for macOS too.
    prebuilt = "ndk/toolchains/llvm/prebuilt/%s-x86_64" % host
    for part in ["bin/clang", "bin/llvm-ar", "sysroot/usr/include"]:
        if not rctx.path("%s/%s" % (prebuilt, part)).exists:
            fail("@android_ndk: %s holds no %s, so it is no NDK for this machine. %s" % (
                "ANDROID_NDK_HOME=" + home if home else "the download",
                prebuilt.removeprefix("ndk/") + "/" + part,
                _ways_out(host),
            ))
    rctx.symlink(prebuilt, "llvm")

    # Asked and not put together from a version: distributions move it, and bin/ may hold links to another place.
    result = rctx.execute(["llvm/bin/clang", "-print-resource-dir"])
    if result.return_code:
        fail("@android_ndk: %s/bin/clang does not run: %s" % (prebuilt, result.stderr))
    resources = result.stdout.strip()
    rctx.symlink(resources, "resources")
    rctx.template("BUILD.bazel", rctx.attr.build_file)
    rctx.file("paths.bzl", '"""Where clang looks for its own headers."""\n\nRESOURCE_DIRECTORY = %s\n' % repr(resources))

android_ndk = repository_rule(
    implementation = _android_ndk_impl,
    attrs = {
        "build_file": attr.label(
            allow_single_file = True,
            doc = "The BUILD file of the repository.",
            mandatory = True,
        ),
    },
    doc = "An Android NDK, found or fetched.",
    environ = ["ANDROID_NDK_HOME"],
)

def _android_impl(mctx):
    android_ndk(
        name = "android_ndk",
        build_file = "//platforms/toolchains/android:ndk.BUILD.bazel",
    )
    return mctx.extension_metadata(reproducible = True)

android = module_extension(
    doc = "Declares @android_ndk.",
    implementation = _android_impl,
)
