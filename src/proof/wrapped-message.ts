import { type Bytes, utf8 } from '../format/bytes.js'
import { encodeHex } from '../format/hex.js'

/** What wallets sign in place of the deep hash of an item (ANS-104): Ethereum's forms are in ethereum.ts. */

/** Type 4: Solana wallets sign texts, here the hexadecimal digits. */
export function solanaMessage(message: Uint8Array): Bytes {
  return utf8(encodeHex(message))
}

/** Type 5: Aptos wallets sign a text with a nonce, which is the same for all items. */
export function aptosMessage(message: Uint8Array): Bytes {
  return utf8(`APTOS\nmessage: ${encodeHex(message)}\nnonce: bundlr`)
}
