/** IP addresses and ranges of them: 128 bits in four words, IPv4 as `::ffff:a.b.c.d` (RFC 4291 section 2.5.5.2). */
export interface IpAddress {
  /** Four 32-bit words, most significant first. */
  readonly words: Int32Array
  /** IPv4, or IPv4 mapped into IPv6. */
  readonly v4: boolean
}

/** All addresses that share the first `bits` bits with `words`. IPv4 ranges count their bits from 96. */
export interface IpRange {
  readonly words: Int32Array
  readonly bits: number
}

/** `0000:0000:0000:0000:0000:ffff:255.255.255.255` */
const textMax = 45

/** The distance of a full stop from the digit 0 in ASCII. */
const stop = 46 - 48

/**
 * One word; undefined for anything but four plain decimal numbers: some programs read `010` as 8, others as 10. Read character by
 * character, because several of these run for each request, and a regular expression takes four times as long.
 */
function parseQuad(text: string): number | undefined {
  let [word, byte, stops] = [0, -1, 0]
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit === stop) {
      if (byte < 0 || stops === 3) return undefined
      word = (word << 8) | byte
      byte = -1
      stops += 1
    } else {
      if (digit < 0 || digit > 9 || byte === 0) return undefined
      byte = byte < 0 ? digit : byte * 10 + digit
      if (byte > 255) return undefined
    }
  }
  return stops === 3 && byte >= 0 ? (word << 8) | byte : undefined
}

function mapped(word: number): IpAddress {
  return { words: Int32Array.of(0, 0, 0xffff, word), v4: true }
}

/** Groups of 16 bits of one side of `::`; an IPv4 address may end the text. Undefined where one is malformed. */
function parseGroups(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [at, part] of parts.entries()) {
    if (isEnd && at === parts.length - 1 && part.includes('.')) {
      const word = parseQuad(part)
      if (word === undefined) return undefined
      groups.push(word >>> 16, word & 0xffff)
    } else if (/^[0-9A-Fa-f]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

/** Reads an address without port, brackets, zone or spaces (RFC 4291 section 2.2). Undefined for anything else. */
export function parseIp(text: string): IpAddress | undefined {
  if (text.length > textMax) return undefined
  if (!text.includes(':')) {
    const word = parseQuad(text)
    return word === undefined ? undefined : mapped(word)
  }
  const sides = text.split('::')
  if (sides.length > 2) return undefined
  const [first = '', second] = sides
  const head = parseGroups(first, second === undefined)
  const tail = second === undefined ? [] : parseGroups(second, true)
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (second === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail]
  const words = new Int32Array(4)
  groups.forEach((group, at) => {
    words[at >> 1] = ((words[at >> 1] ?? 0) << 16) | group
  })
  return { words, v4: words[0] === 0 && words[1] === 0 && words[2] === 0xffff }
}

/** The canonical text (RFC 5952): mapped IPv4 in dotted form. */
export function formatIp(words: Int32Array): string {
  const [one = 0, two = 0, three = 0, four = 0] = words
  if (one === 0 && two === 0 && three === 0xffff) {
    return [four >>> 24, (four >>> 16) & 255, (four >>> 8) & 255, four & 255].join('.')
  }
  const groups = [one, two, three, four].flatMap((word) => [word >>> 16, word & 0xffff])
  const { start, length } = longestZeros(groups)
  const hex = (some: number[]): string => some.map((group) => group.toString(16)).join(':')
  if (length < 2) return hex(groups)
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`
}

function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start += 1) {
    let length = 0
    while (groups[start + length] === 0) length += 1
    if (length > best.length) best = { start, length }
  }
  return best
}

/** The address with all but its first `bits` bits cleared. */
export function maskIp(words: Int32Array, bits: number): Int32Array {
  return words.map((word, at) => {
    const kept = Math.min(Math.max(bits - at * 32, 0), 32)
    return kept === 0 ? 0 : word & (-1 << (32 - kept))
  })
}

/** Reads `address` or `address/bits` (RFC 4632); bits behind the prefix are cleared. Undefined where it is malformed. */
export function parseIpRange(text: string): IpRange | undefined {
  const slash = text.indexOf('/')
  const address = parseIp(slash < 0 ? text : text.slice(0, slash))
  if (address === undefined) return undefined
  const isDotted = !text.includes(':')
  const most = isDotted ? 32 : 128
  const given = slash < 0 ? String(most) : text.slice(slash + 1)
  if (!/^(0|[1-9]\d{0,2})$/.test(given) || Number(given) > most) return undefined
  const bits = Number(given) + (isDotted ? 96 : 0)
  return { words: maskIp(address.words, bits), bits }
}

/** Whether an address (words of 32 bits) has the leading bits of a range. */
export function isInRange({ words, bits }: IpRange, address: Int32Array): boolean {
  for (let at = 0; at * 32 < bits; at += 1) {
    const kept = Math.min(bits - at * 32, 32)
    if ((((address[at] ?? 0) ^ (words[at] ?? 0)) & (-1 << (32 - kept))) !== 0) return false
  }
  return true
}

/** First bits of networks that one party usually has as a whole: the least that is announced in IPv4, and a site of IPv6. */
const networkBits = { v4: 96 + 24, v6: 48 }
/** Leading bits that a provider's addresses share: a usual block of IPv4, the least that is given of IPv6. */
const providerBits = { v4: 96 + 16, v6: 32 }

/** The parties that an address belongs to, the widest first. One person may have thousands of addresses. */
export type Parties = readonly [provider: string, network: string, address: string]

/**
 * Provider (IPv4 /16, IPv6 /32), network (IPv4 /24, IPv6 /48) and the address itself, each as the text of its first address. What
 * is no address is its own network and provider.
 */
export function partiesOf(address: string): Parties {
  // Dotted text has one form only, so its parts are cut out of it.
  if (parseQuad(address) !== undefined) {
    const second = address.indexOf('.', address.indexOf('.') + 1)
    return [`${address.slice(0, second)}.0.0`, `${address.slice(0, address.lastIndexOf('.'))}.0`, address]
  }
  const found = parseIp(address)
  if (found === undefined) return [address, address, address]
  const firstOf = ({ v4, v6 }: typeof networkBits): string =>
    formatIp(maskIp(found.words, found.v4 ? v4 : v6))
  return [firstOf(providerBits), firstOf(networkBits), address]
}

/** The network of an address alone. */
export function networkOfAddress(address: string): string {
  return partiesOf(address)[1]
}
