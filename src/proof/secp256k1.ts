import { createRequire } from 'node:module'

type Library = typeof import('@noble/curves/secp256k1.js')

const require = createRequire(import.meta.url)
let library: Library | undefined

/**
 * The curve of Ethereum's keys. It is loaded with the first signature that needs it, because it takes 2 to 4 MB of each
 * thread, and many threads never verify one. `require` and not `import()`: verifiers answer at once, without a promise.
 */
export function secp256k1(): Library['secp256k1'] {
  library ??= require('@noble/curves/secp256k1.js') as Library
  return library.secp256k1
}
