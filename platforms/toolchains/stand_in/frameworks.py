"""Foundation and Metal for Objective-C, as headers and as lists of symbols, out of Apple's metal-cpp.

metal-cpp (Apache-2.0; the PyPI wheel `mlx-metal` carries it) is C++ that calls Objective-C: each of its functions names
the selector and the types of what it calls, so the method can be declared from it. What ggml-metal uses of Foundation
and metal-cpp has not is in FOUNDATION below, after Apple's documentation. What came after the oldest macOS that we
build for is in SINCE: metal-cpp does not say it.
"""

import pathlib
import re

# Methods that metal-cpp has not, by class; and classes that it has not, with what they inherit.
FOUNDATION = {
    "NSArray": """
        - (NSUInteger)countByEnumeratingWithState:(void *)state objects:(id *)objects count:(NSUInteger)count;
        - (id)objectAtIndexedSubscript:(NSUInteger)index;
    """,
    "NSMutableArray : NSArray": """
        - (void)addObject:(id)object;
        - (void)removeObject:(id)object;
        - (void)removeAllObjects;
    """,
    "NSCharacterSet : NSObject": """
        + (NSCharacterSet *)whitespaceCharacterSet;
    """,
    "NSDictionary": """
        - (id)objectForKeyedSubscript:(id)key;
    """,
    "NSMutableDictionary : NSDictionary": """
        - (void)setObject:(id)object forKey:(id)key;
        - (void)setObject:(id)object forKeyedSubscript:(id)key;
    """,
    "NSError": """
        + (instancetype)errorWithDomain:(NSString *)domain code:(NSInteger)code userInfo:(NSDictionary *)userInfo;
    """,
    "NSFileManager : NSObject": """
        + (NSFileManager *)defaultManager;
        - (BOOL)isReadableFileAtPath:(NSString *)path;
        - (NSDictionary *)attributesOfItemAtPath:(NSString *)path error:(NSError **)error;
        - (NSString *)destinationOfSymbolicLinkAtPath:(NSString *)path error:(NSError **)error;
    """,
    "NSLock : NSObject": """
        - (void)lock;
        - (void)unlock;
    """,
    "NSScanner : NSObject": """
        + (instancetype)scannerWithString:(NSString *)string;
        - (void)setCharactersToBeSkipped:(NSCharacterSet *)characters;
        - (NSCharacterSet *)charactersToBeSkipped;
        - (BOOL)scanString:(NSString *)string intoString:(NSString **)result;
        - (BOOL)scanUpToString:(NSString *)string intoString:(NSString **)result;
    """,
    "NSSet": """
        + (instancetype)set;
        + (instancetype)setWithArray:(NSArray *)array;
        - (BOOL)containsObject:(id)object;
    """,
    "NSMutableSet : NSSet": """
        - (void)addObject:(id)object;
    """,
    "NSBundle": """
        - (NSString *)pathForResource:(NSString *)name ofType:(NSString *)extension;
    """,
    "NSString": """
        + (instancetype)pathWithComponents:(NSArray *)components;
        + (instancetype)stringWithFormat:(NSString *)format, ... __attribute__((format(__NSString__, 1, 2)));
        + (instancetype)stringWithUTF8String:(const char *)text;
        + (instancetype)stringWithContentsOfFile:(NSString *)path encoding:(NSStringEncoding)encoding
                                           error:(NSError **)error;
        - (instancetype)initWithBytes:(const void *)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding;
        - (NSArray *)componentsSeparatedByString:(NSString *)separator;
        - (BOOL)containsString:(NSString *)text;
        - (NSString *)stringByAppendingPathComponent:(NSString *)component;
        - (NSString *)stringByAppendingPathExtension:(NSString *)extension;
        - (NSString *)stringByDeletingLastPathComponent;
        - (NSString *)stringByStandardizingPath;
        - (NSString *)stringByTrimmingCharactersInSet:(NSCharacterSet *)characters;
        - (NSString *)substringToIndex:(NSUInteger)index;
    """,
    "NSMutableString : NSString": """
        - (void)appendString:(NSString *)text;
    """,
}
FOUNDATION_CONSTANTS = ["NSFileType", "NSFileTypeSymbolicLink", "NSLocalizedDescriptionKey"]
# What Apple's header includes besides.
FOUNDATION_INCLUDES = """\
#include <Block.h>
#include <dispatch/dispatch.h>
#include <inttypes.h>
#include <mach/mach.h>
#include <objc/NSObject.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
"""
FOUNDATION_FUNCTIONS = """\
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) { return (NSRange){location, length}; }
"""
METAL_FUNCTIONS = """\
extern id<MTLDevice> MTLCreateSystemDefaultDevice(void);
extern NSArray *MTLCopyAllDevices(void);
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  return (MTLSize){width, height, depth};
}
"""
SINCE = {"MTLResidencySet": "15.0", "MTLResidencySetDescriptor": "15.0"}

# Classes whose elements have a type: NSArray<NSString *>.
ELEMENTS = {
    "NSArray": "<Object>",
    "NSDictionary": "<Key, Value>",
    "NSMutableArray": "<Object>",
    "NSMutableDictionary": "<Key, Value>",
    "NSMutableSet": "<Object>",
    "NSSet": "<Object>",
}
TYPES = {"Integer": "NSInteger", "UInteger": "NSUInteger", "bool": "BOOL", "unichar": "unsigned short"}
C_TYPE = r"void|char|short|int|long|float|double|unsigned|signed|size_t|u?int(8|16|32|64)_t|const|SEL|Class"


class Unknown(Exception):
    """A type that has no name in Objective-C here; what takes it is left out."""


class Framework:
    """One of metal-cpp's folders."""

    def __init__(self, folder: pathlib.Path, namespace: str, base: "Framework | None" = None):
        # Without Metal 4, whose namespace is another, and ray tracing.
        headers = [path for path in sorted(folder.glob("*.hpp")) if not re.match("MTL4|MTLAcceleration", path.name)]
        self.text = re.sub(r"//[^\n]*", "", "\n".join(path.read_text() for path in headers))
        self.namespace, self.base = namespace, base
        self.selectors = dict(self._find(r"_PRIVATE_DEF_SEL\((\w+),\s*\"([^\"]+)\"\)"))
        if base:
            self.selectors |= base.selectors
        parent = r"(?:NS::)?(?:Copying|Locking|Referencing|SecureCoding) ?<\1(?:, (?:\w+::)?(\w+))?>"
        # {class or protocol: what it inherits, or ""}
        self.parents = dict(self._find(rf"\n *class (\w+) : public {parent}"))
        # In Metal, what has no class object is a protocol.
        self.protocols = set(self.parents) - set(self._find(r"_DEF_CLS\(MTL(\w+)\)")) if base else set()
        self.blocks = dict(self._find(r"\nusing (\w+) = (void \(\^\)\([^;]*\));"))
        self.enums = self._find(rf"\n_{namespace}_(?:ENUM|OPTIONS)\(([\w:]+), (\w+)\)\s*\{{(.*?)\}};")
        self.structs = self._find(rf"\nstruct (\w+)\n\{{(.*?)\n\}} _{namespace}_PACKED;")

    def _find(self, pattern: str) -> list:
        return re.findall(pattern, self.text, re.DOTALL)

    def _named(self, namespace: str | None, name: str, stars: str) -> str:
        if re.fullmatch(C_TYPE, name):
            return f"{name} {stars}"
        if name == "Object" or name.startswith("_"):
            return f"id {stars[1:]}"
        if name in TYPES:
            return f"{TYPES[name]} {stars}"
        if self.base and (namespace == "NS" or name not in self.text):
            return self.base._named("NS", name, stars)
        if name in self.blocks:
            return self.type(self.blocks[name])
        if name in self.protocols:
            return f"id<{self.namespace}{name}> {stars[1:]}"
        if name in self.parents or name in {name for _, name, _ in self.enums} | {name for name, _ in self.structs}:
            return f"{self.namespace}{name} {stars}"
        raise Unknown(name)

    def type(self, cpp: str) -> str:
        """A type of C++ in Objective-C: `const MTL::Buffer*` is `id<MTLBuffer>`."""
        # An object itself is never const; a C string and a list of objects are.
        cpp = re.sub(r"\b(?:const (?=(?:\w+::)?[A-Z_]\w*\s*\*)|class |std::)", "", cpp)
        return re.sub(r"(?:(\w+)::)?(\w+)\s*(\**)", lambda match: self._named(*match.groups()), cpp).strip()

    def _argument(self, cpp: str) -> str:
        block = re.fullmatch(r"void \(\^\w*\)(\(.*\))", cpp.strip())
        if block:
            return self.type("void (^)" + block[1])
        plain = re.fullmatch(r"(.*?)\s*\w+(\[\])?", cpp.strip())
        if not plain:
            raise Unknown(cpp)
        return self.type(plain[1]) + (" *" if plain[2] else "")

    def methods(self) -> dict[str, list[str]]:
        """{class or protocol: its methods}"""
        result: dict[str, list[str]] = {}
        function = rf"_{self.namespace}_INLINE ([^;{{}}]*?)\s*{self.namespace}::(\w+)::\w+\(([^{{}}]*?)\)(?: const)?\s*"
        call = r"\{\s*(?:return )?(?:NS::)?Object::sendMessage(?:Safe)?<[^;]*?>\((this|\w+\(\w+\)), \w+_SEL\((\w+)\)"
        for returned, owner, arguments, receiver, accessor in self._find(function + call):
            selector = self.selectors[accessor]
            names = selector.split(":")[:-1]
            try:
                types = [self._argument(each) for each in re.split(r",(?![^()]*\))", arguments) if each]
                # A class says so of what it makes of itself, so that what inherits makes something of its own.
                of_itself = re.fullmatch(rf"(?:\w+::)?{owner}\s*\*", returned) and owner not in self.protocols
                method = (
                    f"{'-' if receiver == 'this' else '+'} ({'instancetype' if of_itself else self.type(returned)})"
                )
            except Unknown:
                continue
            if len(names) == len(types):
                taken = " ".join(f"{name}:({types[i]})a{i}" for i, name in enumerate(names))
                result.setdefault(owner, []).append(f"{method}{taken or selector};")
        return result

    def _types(self) -> list[str]:
        lines = []
        for underlying, name, body in self.enums:
            # All bits.
            values = re.sub("NS::UIntegerMax", "-1", body)
            values = re.sub(r"(?<!\w)([A-Z]\w*)", rf"{self.namespace}\1", values)
            lines.append(f"typedef enum : {self.type(underlying)} {{{values}}} {self.namespace}{name};")
        for name, body in self.structs:
            fields = re.findall(r"\n    ((?:\w+::)?\w+)\s+(\w+(?:\[\d+\])?);", body)
            try:
                members = " ".join(f"{self.type(type)} {field};" for type, field in fields)
            except Unknown:
                continue
            lines.append(f"typedef struct {{ {members} }} {self.namespace}{name};")
        return lines

    def _inherited(self, name: str) -> str:
        parent = self.parents[name]
        alike = parent in self.parents and (parent in self.protocols) == (name in self.protocols)
        return self.namespace + parent if alike else "NSObject"

    def declare(self, extra: dict[str, str], constants: list[str], functions: str) -> tuple[str, list[str]]:
        """The framework's declarations and the names of its classes.

        Args:
          extra: {"CLASS : WHAT IT INHERITS": its methods} besides those of metal-cpp.
          constants: strings that it exports.
          functions: its functions, in C.
        """
        methods = self.methods()
        # {class or protocol: (what it inherits, its methods)}
        names = [name for name in self.parents if name != "Object"]
        owners = {self.namespace + name: (self._inherited(name), methods.get(name, [])) for name in names}
        for title, lines in extra.items():
            name, _, parent = title.partition(" : ")
            parent, known = owners.get(name, (parent, []))
            owners[name] = (parent, [*known, lines])
        protocols = [self.namespace + name for name in sorted(self.protocols)]
        classes = [name for name in owners if name not in protocols]
        text = [f"@class {', '.join(classes)};"] + [f"@protocol {name};" for name in protocols] + self._types()

        def depth(name: str) -> int:
            return 1 + depth(owners[name][0]) if name in owners else 0

        for name in sorted(owners, key=depth):
            parent, lines = owners[name]
            interface = f"@interface {name}{ELEMENTS.get(name, '')} : {parent}"
            if name in SINCE:
                text.append(f"__attribute__((availability(macos, introduced={SINCE[name]})))")
            text += [f"@protocol {name} <{parent}>" if name in protocols else interface, *lines, "@end"]
        text += [f"extern NSString *const {name};" for name in constants]
        return "\n".join([*text, functions]), classes


def make_headers(metal_cpp: pathlib.Path, frameworks: pathlib.Path) -> dict[str, tuple[list[str], list[str]]]:
    """Puts the headers into a new folder.

    Returns:
      {framework: (constants and functions that it exports, classes)}.
    """
    foundation = Framework(metal_cpp / "Foundation", "NS")
    metal = Framework(metal_cpp / "Metal", "MTL", foundation)
    exports = {}
    for framework, name, includes, extra, constants, functions in [
        (foundation, "Foundation", FOUNDATION_INCLUDES, FOUNDATION, FOUNDATION_CONSTANTS, FOUNDATION_FUNCTIONS),
        (metal, "Metal", "#include <Foundation/Foundation.h>\n", {}, [], METAL_FUNCTIONS),
    ]:
        declarations, classes = framework.declare(extra, constants, functions)
        folder = frameworks / f"{name}.framework/Headers"
        folder.mkdir(parents=True)
        (folder / f"{name}.h").write_text(f"#pragma once\n{includes}{declarations}")
        exports[name] = constants + re.findall(r"^extern .*?(\w+)\(", functions, re.MULTILINE), classes
    return exports
