/** Base58 with the Bitcoin alphabet: the text form of Solana keys and addresses. For short values only (quadratic time). */

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** The base58 text of `bytes`; each leading zero byte is a leading `1`. */
export function encodeBase58(bytes: Uint8Array): string {
  const zeros = bytes.findIndex((byte) => byte !== 0)
  const lead = '1'.repeat(zeros < 0 ? bytes.length : zeros)
  if (zeros < 0) return lead
  let value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  while (value > 0n) {
    text = alphabet[Number(value % 58n)]! + text
    value /= 58n
  }
  return lead + text
}

/** The bytes of a base58 text of at most 128 characters, or undefined where it is none. */
export function decodeBase58(text: string): Uint8Array | undefined {
  if (text.length > 128) return undefined
  let value = 0n
  for (const character of text) {
    const digit = alphabet.indexOf(character)
    if (digit < 0) return undefined
    value = value * 58n + BigInt(digit)
  }
  const hex = value === 0n ? '' : value.toString(16)
  const body = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const zeros = text.length - text.replace(/^1+/, '').length
  return Buffer.concat([Buffer.alloc(zeros), body])
}
