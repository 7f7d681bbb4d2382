import { random } from '../property.js'

function below(count: number): number {
  return Math.floor(random() * count)
}

function noise(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = below(256)
}

export const damageKinds = [
  'noise',
  'zeros',
  'another page',
  'half of it noise',
  'bits',
  'noise behind its head',
  'words',
] as const

/** What lies in a page of LMDB with this number after such damage. `other`: another page of the file. */
export function spoiltPage(
  page: Buffer,
  other: Buffer,
  kind: (typeof damageKinds)[number],
  number: number,
): Buffer {
  const spoilt = Buffer.from(page)
  const half = page.length >> 1
  switch (kind) {
    case 'noise':
      noise(spoilt)
      break
    case 'zeros':
      spoilt.fill(0)
      break
    case 'another page':
      return Buffer.from(other)
    case 'half of it noise':
      noise(random() < 0.5 ? spoilt.subarray(0, half) : spoilt.subarray(half))
      break
    case 'bits':
      for (let flips = 0; flips < 30; flips += 1) {
        const at = below(page.length)
        spoilt[at] = (spoilt[at] ?? 0) ^ (1 << below(8))
      }
      break
    case 'noise behind its head':
      // It calls itself what it should be: the worst that LMDB can meet.
      noise(spoilt.subarray(20))
      spoilt.writeBigUInt64LE(BigInt(number), 0)
      break
    case 'words':
      // Numbers of places and lengths within the page.
      for (let changes = 0; changes < 6; changes += 1)
        spoilt.writeUInt16LE(below(page.length), 20 + 2 * below(100))
      break
  }
  return spoilt
}
