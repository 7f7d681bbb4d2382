import { createHash, hash } from 'node:crypto'
import { type Id, idBytes, idOfBytes, parseId } from './id.js'
import { type Manifest, type ManifestLimits, trimSlashes } from './manifest.js'
import { isRefusal, type Reason, type Refusal, refuse } from './refusal.js'

/**
 * A packed manifest: what a manifest says, in a form in which a path is found with a few small reads. Integers are
 * unsigned, 32 bits, little-endian.
 *
 *     0    8   "SLMANIF1"
 *     8   32   SHA-256 of the manifest's text
 *     40  32   SHA-256 of everything behind byte 72
 *     72   4   verdict: 0 a manifest, 1 malformed, 2 too large
 *     76   4   number of paths; else: bytes of the message (UTF-8) that follows the head
 *     80   4   bits of the directory (0 to 16)
 *     84   4   state of the index: 0 there is none, 1 an id, 2 a text that is no id
 *     88   4   state of the fallback
 *     92  32   id of the index
 *     124 32   id of the fallback
 *     156  4   limit: number of paths
 *     160  4   limit: bytes of a path
 *     164  4   0
 *     168      the directory: for each beginning of a key of so many bits the number of the first record with it or a greater
 *              one, and the number of records
 *     then     records of 48 bytes in the order of their keys: the first 15 bytes of the path's SHA-256, the state of the
 *              id (1 or 2), the id
 *
 * Paths themselves are not kept, only 120 bits of their SHA-256: two paths with the same bits could only be made by
 * the author of the manifest, who decides what both lead to anyway. Records are sorted, not kept in a hash table,
 * because that bounds each search whatever paths the author chose.
 */
export const packedHeadBytes = 168
const magic = Buffer.from('SLMANIF1')
const keyBytes = 15
const recordBytes = 48
const checkedFrom = 72
const directoryBitsMax = 16
/** Records for each place of the directory, on average at most. */
const bucketRecords = 32
/** The binary search ends when so few records are left; these are read at once. */
const readRecordsMax = 64

const states = { absent: 0, id: 1, wrong: 2 } as const
const verdicts: readonly (Reason | undefined)[] = [undefined, 'malformed', 'too-large']

/** What a path leads to; `fallback`: the path itself is not there. */
export interface Resolved {
  readonly id: Id
  readonly fallback: boolean
}

/** An id as the manifest has it. `wrong`: a text that is no id. */
type Named = Id | 'wrong' | undefined

/** The head of a packed manifest. */
export interface PackedHead {
  /** Why the text is no manifest that could be read; undefined: it is one. */
  readonly verdict: Reason | undefined
  /** SHA-256 of the manifest's text. */
  readonly digest: Uint8Array
  /** Paths, or bytes of the message. */
  readonly count: number
  readonly index: Named
  readonly fallback: Named
  /** Limits under which the verdict was found. */
  readonly limits: Pick<ManifestLimits, 'pathsMax' | 'pathMaxBytes'>
  readonly bits: number
  /** Where the directory ends and the records begin. */
  readonly recordsAt: number
}

/** Reads bytes of a packed manifest; undefined where reading fails. */
export type ReadPacked = (position: number, length: number) => Uint8Array | undefined

function keyOf(path: string): Buffer {
  return hash('sha256', path, 'buffer').subarray(0, keyBytes)
}

/** The first `bits` bits of the bytes at `at`. */
function beginning(bytes: Buffer, at: number, bits: number): number {
  return bits === 0 ? 0 : bytes.readUInt32BE(at) >>> (32 - bits)
}

function directoryBits(paths: number): number {
  return Math.min(directoryBitsMax, Math.max(0, Math.ceil(Math.log2(Math.max(1, paths / bucketRecords)))))
}

function writeNamed(to: Buffer, stateAt: number, idAt: number, text: string | undefined): void {
  const id = text === undefined ? undefined : parseId(text)
  to.writeUInt32LE(text === undefined ? states.absent : id === undefined ? states.wrong : states.id, stateAt)
  if (id !== undefined) to.set(idBytes(id), idAt)
}

/** The records in the order of the paths. Paths that no request can spell (lone surrogates) are left out. */
function recordsOf(paths: ReadonlyMap<string, string>): Buffer {
  const records = Buffer.alloc(paths.size * recordBytes)
  let at = 0
  for (const [path, text] of paths) {
    if (path === '' || /\p{Surrogate}/u.test(path)) continue
    hash('sha256', path, 'buffer').copy(records, at, 0, keyBytes)
    const isId = parseId(text) !== undefined
    records[at + keyBytes] = isId ? states.id : states.wrong
    if (isId) records.write(text, at + keyBytes + 1, 'base64url')
    at += recordBytes
  }
  return records.subarray(0, at)
}

/** The number of the first record with each beginning of a key or a greater one, once they are sorted. */
function directoryOf(records: Buffer, bits: number): Uint32Array {
  const directory = new Uint32Array((1 << bits) + 1)
  for (let at = 0; at < records.length; at += recordBytes) directory[beginning(records, at, bits) + 1]! += 1
  for (let place = 1; place < directory.length; place += 1) directory[place]! += directory[place - 1]!
  return directory
}

/** The records in the order of their keys: a bucket sort by the first bits, then a sort inside each bucket. */
function sorted(records: Buffer, directory: Uint32Array, bits: number): Buffer {
  const ordered = Buffer.allocUnsafe(records.length)
  const next = directory.slice()
  for (let at = 0; at < records.length; at += recordBytes) {
    const place = beginning(records, at, bits)
    records.copy(ordered, next[place]! * recordBytes, at, at + recordBytes)
    next[place]! += 1
  }
  for (let place = 0; place < 1 << bits; place += 1) {
    const part = ordered.subarray(directory[place]! * recordBytes, directory[place + 1]! * recordBytes)
    const own = Array.from({ length: part.length / recordBytes }, (_, at) =>
      Buffer.from(part.subarray(at * recordBytes, (at + 1) * recordBytes)),
    )
    own.sort(Buffer.compare).forEach((record, at) => void record.copy(part, at * recordBytes))
  }
  return ordered
}

/**
 * Packs a manifest whose text has this SHA-256, or the refusal of its parser, so that the text need not be parsed
 * again.
 */
export function packManifest(read: Manifest | Refusal, digest: Uint8Array, limits: ManifestLimits): Buffer {
  const head = Buffer.alloc(packedHeadBytes)
  let parts: Buffer[]
  if (isRefusal(read)) {
    const message = Buffer.from(read.message)
    head.writeUInt32LE(Math.max(1, verdicts.indexOf(read.refused)), 72)
    head.writeUInt32LE(message.length, 76)
    parts = [head, message]
  } else {
    const records = recordsOf(read.paths)
    const count = records.length / recordBytes
    const bits = directoryBits(count)
    const directory = directoryOf(records, bits)
    head.writeUInt32LE(count, 76)
    head.writeUInt32LE(bits, 80)
    writeNamed(head, 84, 92, read.index)
    writeNamed(head, 88, 124, read.fallback)
    const places = Buffer.alloc(directory.length * 4)
    directory.forEach((first, place) => void places.writeUInt32LE(first, place * 4))
    parts = [head, places, sorted(records, directory, bits)]
  }
  head.set(magic, 0)
  head.set(digest, 8)
  head.writeUInt32LE(limits.pathsMax, 156)
  head.writeUInt32LE(limits.pathMaxBytes, 160)
  const packed = Buffer.concat(parts)
  packed.set(createHash('sha256').update(packed.subarray(checkedFrom)).digest(), 40)
  return packed
}

function readNamed(head: Buffer, stateAt: number, idAt: number): Named {
  const state = head.readUInt32LE(stateAt)
  if (state === states.absent) return undefined
  return state === states.id ? idOfBytes(head.subarray(idAt, idAt + 32)) : 'wrong'
}

/** Reads the first bytes of a packed manifest of `sizeBytes`; undefined where they are none. */
export function readPackedHead(head: Buffer, sizeBytes: number): PackedHead | undefined {
  if (head.length < packedHeadBytes || magic.compare(head, 0, magic.length) !== 0) return undefined
  const verdict = head.readUInt32LE(72)
  const count = head.readUInt32LE(76)
  const bits = head.readUInt32LE(80)
  if (verdict >= verdicts.length || bits > directoryBitsMax) return undefined
  const recordsAt = packedHeadBytes + ((1 << bits) + 1) * 4
  const wanted = verdict === 0 ? recordsAt + count * recordBytes : packedHeadBytes + count
  if (wanted !== sizeBytes) return undefined
  return {
    verdict: verdicts[verdict],
    digest: Buffer.from(head.subarray(8, 40)),
    count,
    bits,
    recordsAt,
    index: readNamed(head, 84, 92),
    fallback: readNamed(head, 88, 124),
    limits: { pathsMax: head.readUInt32LE(156), pathMaxBytes: head.readUInt32LE(160) },
  }
}

/** True where a whole packed manifest is what was written, for the text with this SHA-256 and under these limits. */
export function isIntact(packed: Buffer, digest: Uint8Array, limits: ManifestLimits): boolean {
  const head = readPackedHead(packed, packed.length)
  if (head === undefined || Buffer.compare(head.digest, digest) !== 0) return false
  const { pathsMax, pathMaxBytes } = head.limits
  if (pathsMax !== limits.pathsMax || pathMaxBytes !== limits.pathMaxBytes) return false
  const found = createHash('sha256').update(packed.subarray(checkedFrom)).digest()
  return found.compare(packed, 40, checkedFrom) === 0
}

/** Why a text is no manifest, as it was found when it was parsed; undefined: it is one. */
export function refusalOf({ verdict, count }: PackedHead, read: ReadPacked): Refusal | undefined {
  if (verdict === undefined) return undefined
  const message = Buffer.from(read(packedHeadBytes, count) ?? []).toString('utf8')
  return refuse(verdict, 'upstream', message)
}

/**
 * What `path` leads to, percent-decoded and without a slash at its start: compared exactly but for slashes at the end; the empty
 * one means the index. `absent`: neither it nor a fallback is there, or the id found is none. `broken`: bytes cannot be read.
 */
export function resolvePacked(
  head: PackedHead,
  read: ReadPacked,
  path: string,
): Resolved | 'absent' | 'broken' {
  const wanted = trimSlashes(path)
  const direct = wanted === '' ? head.index : find(head, read, keyOf(wanted))
  if (direct === 'broken') return 'broken'
  const id = direct ?? head.fallback
  return id === undefined || id === 'wrong' ? 'absent' : { id, fallback: direct === undefined }
}

function find({ bits, count, recordsAt }: PackedHead, read: ReadPacked, key: Buffer): Named | 'broken' {
  const bounds = read(packedHeadBytes + beginning(key, 0, bits) * 4, 8)
  if (bounds === undefined) return 'broken'
  const view = Buffer.from(bounds.buffer, bounds.byteOffset, 8)
  let [low, high] = [view.readUInt32LE(0), view.readUInt32LE(4)]
  if (low > high || high > count) return 'broken'
  while (high - low > readRecordsMax) {
    const middle = (low + high) >>> 1
    const found = read(recordsAt + middle * recordBytes, keyBytes)
    if (found === undefined) return 'broken'
    if (Buffer.compare(found, key) <= 0) low = middle
    else high = middle
  }
  if (low === high) return undefined
  const records = read(recordsAt + low * recordBytes, (high - low) * recordBytes)
  if (records === undefined) return 'broken'
  for (let at = 0; at < records.length; at += recordBytes) {
    if (key.compare(records, at, at + keyBytes) !== 0) continue
    const state = records[at + keyBytes]
    return state === states.id ? idOfBytes(records.subarray(at + keyBytes + 1, at + recordBytes)) : 'wrong'
  }
  return undefined
}
