/** Bech32 (BIP 173), writing only: addresses of some networks whose keys sign data items. */

const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const generator = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]

function checksum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    generator.forEach((term, bit) => {
      if (((top >>> bit) & 1) === 1) sum ^= term
    })
  }
  return sum
}

/** Bytes regrouped into values of five bits, zero bits at the end. */
function fives(bytes: Uint8Array): number[] {
  const values: number[] = []
  let held = 0
  let bits = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      values.push((held >>> bits) & 31)
    }
  }
  if (bits > 0) values.push((held << (5 - bits)) & 31)
  return values
}

/** The bech32 text of `bytes` behind the lower-case prefix. */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  const data = fives(bytes)
  const codes = [...prefix].map((char) => char.charCodeAt(0))
  const expanded = [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)]
  const sum = checksum([...expanded, ...data, 0, 0, 0, 0, 0, 0]) ^ 1
  const tail = [25, 20, 15, 10, 5, 0].map((shift) => (sum >>> shift) & 31)
  return `${prefix}1${[...data, ...tail].map((value) => alphabet[value]).join('')}`
}
