// The client in Node.js, through koffi.
import { createRequire } from 'node:module';
import { main } from './client.mjs';

// Not an import: only require() looks into NODE_PATH.
const koffi = createRequire(import.meta.url)('koffi');

// The library's handles and addresses stay integers: nothing here may follow them by itself.
const TYPES = {
  void: 'void',
  i32: 'int32_t',
  f32: 'float',
  usize: 'size_t',
  handle: 'uintptr_t',
  address: 'uintptr_t',
  ptr: 'void *',
};

main({
  open(path) {
    const library = koffi.load(path);
    return {
      bind(name, result, parameters) {
        try {
          return library.func(name, TYPES[result], parameters.map((type) => TYPES[type]));
        } catch {
          return null;
        }
      },
      addressOf: (bytes) => koffi.address(bytes),
      readString: (address) => koffi.decode.string(BigInt(address)),
      readInt32s: (address, count) => Int32Array.from(koffi.decode(BigInt(address), 'int32_t', count)),
      close: () => library.unload(),
    };
  },
});
