// The client in Bun, through bun:ffi.
import { CString, dlopen, ptr, toArrayBuffer } from 'bun:ffi';
import { main } from './client.mjs';

// Bun keeps a pointer in a double, which is enough for 52 bits of address, and for the library's handles.
const TYPES = {
  void: 'void',
  i32: 'i32',
  f32: 'f32',
  usize: 'usize',
  handle: 'ptr',
  address: 'ptr',
  ptr: 'ptr',
};

main({
  open(path) {
    const libraries = [];
    return {
      // A dlopen each: bun:ffi fails as a whole where one symbol is missing.
      bind(name, result, parameters) {
        let library;
        try {
          library = dlopen(path, { [name]: { returns: TYPES[result], args: parameters.map((type) => TYPES[type]) } });
        } catch {
          return null;
        }
        libraries.push(library);
        const call = library.symbols[name];
        return (...values) =>
          call(...values.map((value, i) => (parameters[i] === 'address' || parameters[i] === 'handle' ? Number(value) : value)));
      },
      addressOf: (bytes) => BigInt(ptr(bytes)),
      readString: (address) => new CString(Number(address)).toString(),
      readInt32s: (address, count) => new Int32Array(toArrayBuffer(Number(address), 0, 4 * count).slice(0)),
      close: () => libraries.forEach((library) => library.close()),
    };
  },
});
