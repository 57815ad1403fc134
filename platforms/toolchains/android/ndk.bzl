"""The Android NDK: that of ANDROID_NDK_HOME, where it is set, else Google's, which third_party/extensions.bzl pins.

Nothing looks for it before something is built for an Android platform, so a machine without one
builds everything else.
"""

_WAYS_OUT = "Set ANDROID_NDK_HOME to an NDK's folder (%s or newer), or build where %s can be reached."

_FACTS = '''\
"""What is known of this NDK."""

# Where clang looks for its own headers.
RESOURCE_DIRECTORY = %s

# Its name in third_party/extensions.bzl; none where it is ANDROID_NDK_HOME's.
PIN = %s

REVISION = %s
'''

def _ways_out(rctx):
    return _WAYS_OUT % (rctx.attr.version, rctx.attr.url)

def _host(rctx):
    if rctx.os.name.startswith("mac"):
        return "darwin"
    return rctx.os.name.split(" ")[0]

def _download(rctx, host):
    if host != "linux":
        fail("@android_ndk: no NDK is pinned for %s: set ANDROID_NDK_HOME to an NDK's folder (%s or newer)." % (host, rctx.attr.version))
    result = rctx.download(
        allow_fail = True,
        output = "ndk.zip",
        sha256 = rctx.attr.sha256,
        url = rctx.attr.url,
    )
    if not result.success:
        fail("@android_ndk: builds for Android need the NDK, which is not here and could not be downloaded. " + _ways_out(rctx))
    rctx.extract("ndk.zip", stripPrefix = "android-ndk-" + rctx.attr.version, output = "ndk")
    rctx.delete("ndk.zip")

# "28.2.13676358", as an NDK says of itself.
def _revision(rctx):
    for line in rctx.read("ndk/source.properties").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "Pkg.Revision":
            return value.strip()
    return ""

def _android_ndk_impl(rctx):
    host = _host(rctx)
    home = rctx.getenv("ANDROID_NDK_HOME")
    if home:
        rctx.symlink(home, "ndk")
    else:
        _download(rctx, host)

    # Google names it after the machines it was built on, which are x86-64 for macOS too.
    llvm = "toolchains/llvm/prebuilt/%s-x86_64" % host
    for part in ["source.properties", llvm + "/bin/clang", llvm + "/bin/llvm-ar", llvm + "/sysroot/usr/include"]:
        if not rctx.path("ndk/" + part).exists:
            fail("@android_ndk: %s holds no %s, so it is no NDK for this machine. %s" % (
                "ANDROID_NDK_HOME=" + home if home else "the download",
                part,
                _ways_out(rctx),
            ))
    rctx.symlink("ndk/" + llvm, "llvm")

    # Asked and not put together from a version: distributions move it, and bin/ may hold links to another place.
    result = rctx.execute(["llvm/bin/clang", "-print-resource-dir"])
    if result.return_code:
        fail("@android_ndk: %s/bin/clang does not run: %s" % (llvm, result.stderr))
    resources = result.stdout.strip()
    rctx.symlink(resources, "resources")
    rctx.template("BUILD.bazel", rctx.attr.build_file)
    rctx.file("ndk_facts.bzl", _FACTS % (repr(resources), repr("" if home else "android_ndk"), repr(_revision(rctx))))

android_ndk = repository_rule(
    implementation = _android_ndk_impl,
    attrs = {
        "build_file": attr.label(
            allow_single_file = True,
            doc = "The BUILD file of the repository.",
            mandatory = True,
        ),
        "sha256": attr.string(
            doc = "Of the archive, for Linux.",
            mandatory = True,
        ),
        "url": attr.string(mandatory = True),
        "version": attr.string(
            doc = "As Google names it: r28c.",
            mandatory = True,
        ),
    },
    doc = "An Android NDK, found or fetched.",
    environ = ["ANDROID_NDK_HOME"],
)
