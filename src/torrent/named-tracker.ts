import { decodeBencode, encodeBencode } from './bencode.js'

/** What stands before the info of a torrent made here: addresses of trackers. */
export const torrentHeadMaxBytes = 64 * 1024
const headLimits = { depthMax: 4, valuesMax: 1000 }
const infoKey = Buffer.from('4:info')
const dictionaryEnd = Buffer.from('e')
/** What readers of a publication document accept. */
const magnetMax = 4096

/** The tracker of a gateway, by the address of its own routes. */
export function trackerOf(url: string): string {
  return `${url}/indexes/announce`
}

/** The beginning of a .torrent file, and from which byte of the stored one it goes on. */
export interface TorrentHead {
  readonly bytes: Buffer
  readonly from: number
}

/**
 * The beginning of a .torrent file (BEP 3, 12) with `tracker` in front of those that are in it. It is outside of the info, so
 * the infohashes stay. `stored` are the first bytes of the file. Undefined where they do not reach its info, or it was not made
 * here: `torrentBytes` writes nothing but trackers before the info.
 */
export function withTracker(stored: Uint8Array, tracker: string): TorrentHead | undefined {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, Math.min(stored.length, torrentHeadMaxBytes))
  for (let from = bytes.indexOf(infoKey); from > 0; from = bytes.indexOf(infoKey, from + 1)) {
    // An address of a tracker may have the same bytes in it: then it is no dictionary up to there.
    const before = Buffer.concat([bytes.subarray(0, from), dictionaryEnd])
    const read = decodeBencode(before, headLimits)?.value
    if (!(read instanceof Map)) continue
    const [announce, list] = [read.get('announce'), read.get('announce-list')]
    const tiers = Array.isArray(list) ? list.map(textsOf) : [textsOf(announce)]
    const others = tiers.map((tier) => tier.filter((one) => one !== tracker))
    const all = [[tracker], ...others.filter((tier) => tier.length > 0)]
    const parts = ['d8:announce', encodeBencode(tracker), '13:announce-list', encodeBencode(all)]
    return { bytes: Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array))), from }
  }
  return undefined
}

function textsOf(value: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.flatMap((one) => (one instanceof Uint8Array ? [Buffer.from(one).toString('utf8')] : []))
}

/** A magnet with the addresses of trackers behind it (BEP 9), each once, as many as fit into 4096 characters. */
export function magnetWith(magnet: string, trackers: readonly string[]): string {
  let extended = magnet
  for (const tracker of trackers) {
    const word = `tr=${encodeURIComponent(tracker)}`
    const isNew = !extended.split('&').includes(word)
    if (isNew && extended.length + 1 + word.length <= magnetMax) extended += `&${word}`
  }
  return extended
}
