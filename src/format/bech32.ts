import { bech32 } from '@scure/base'

/** The bech32 text (BIP 173) of `bytes` behind the lower-case prefix: addresses of some networks whose keys sign data items. */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  return bech32.encode(prefix, bech32.toWords(bytes), false)
}
