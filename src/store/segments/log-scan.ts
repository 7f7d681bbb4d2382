import { createHash, type Hash } from 'node:crypto'
import { tryWrite } from '../disk-error.js'
import type { Disk, OpenFile } from './disk.js'
import { type LogPlace, logFileName, markSealed, readLogFileName, sealedEnd } from './log-file.js'
import {
  headOfRecordBytes,
  type RecordHead,
  readRecordHead,
  recordBytes,
  type SplitDigest,
  sumOfMeta,
} from './segment-record.js'

/** An item that was found in the log at its start. The bytes are the item's own. */
export interface LoggedItem {
  readonly place: LogPlace
  /** The digest that was stated when it was appended. */
  readonly digest: SplitDigest
  readonly meta: Uint8Array
}

export interface ScanOutcome {
  /** A number that no file has, nor a removed one can be taken for. */
  readonly nextFile: number
  /** Torn ends that were passed over: none of them was ever confirmed as durable. */
  readonly torn: number
  /** Files whose durable part is damaged: what lies behind the damage is not to be had. */
  readonly damaged: readonly string[]
}

const pieceBytes = 1024 * 1024

/** Looks through all files of the log, the oldest first. Files that never held an item go. Rejects where the disk fails. */
export async function scanLog(
  disk: Disk,
  folder: string,
  onItem: (item: LoggedItem) => void,
): Promise<ScanOutcome> {
  const names = disk.list(folder)
  const numbersOf = (kind: 'log' | 'sealed'): number[] =>
    names
      .map((name) => readLogFileName(name, kind))
      .filter((number) => number !== undefined)
      .sort((one, other) => one - other)
  const numbers = numbersOf('log')
  const sealed = new Set(numbersOf('sealed'))
  const last = Math.max(0, ...numbers, ...sealed)
  const damaged: string[] = []
  let torn = 0
  for (const number of numbers) {
    const end = sealed.has(number) ? sealedEnd(disk, folder, number) : undefined
    const found = await scanFile({ disk, folder, number, end }, onItem)
    if (found.damaged) damaged.push(logFileName(number))
    torn += found.torn
    if (found.isEmpty) disk.remove(`${folder}/${logFileName(number)}`)
  }
  // The highest one says which numbers were given before, even where its file has gone.
  for (const number of sealed) {
    if (number !== last && !numbers.includes(number))
      disk.remove(`${folder}/${logFileName(number, 'sealed')}`)
  }
  return { nextFile: last + 1, torn, damaged }
}

interface Scanned {
  readonly disk: Disk
  readonly folder: string
  readonly number: number
  /** Where it ends, by its seal; absent: it has none. */
  readonly end: number | undefined
}

interface Outcome {
  /** There is no item in it that could have been confirmed. */
  readonly isEmpty: boolean
  readonly torn: number
  readonly damaged: boolean
}

async function scanFile(scanned: Scanned, onItem: (item: LoggedItem) => void): Promise<Outcome> {
  const { disk, folder, number } = scanned
  const file = disk.open(`${folder}/${logFileName(number)}`)
  try {
    const sizeBytes = disk.sizeOf(file)
    const end = scanned.end ?? sizeBytes
    let at = 0
    let torn = 0
    let items = 0
    while (at < end) {
      const found = itemAt(disk, file, number, at, sizeBytes)
      if (found === 'damaged') {
        // In a file without a seal a damaged header is the torn end: whatever is durable lies before it.
        const isSealed = scanned.end !== undefined
        return { isEmpty: false, torn: isSealed ? torn : torn + 1, damaged: isSealed }
      }
      if (found === 'nothing') break
      const { header, item } = found
      // Only a seal, or a header that was written last, says that all bytes came to the disk.
      const isKnown = scanned.end !== undefined || header.kind === 'alone'
      const isItem = header.kind !== 'withdrawn' && (isKnown || isWhole(disk, file, item))
      if (isItem) onItem(item)
      items += isItem ? 1 : 0
      torn += isItem || header.kind === 'withdrawn' ? 0 : 1
      at += recordBytes(header.roomBytes, header.payloadBytes)
    }
    const isCut = scanned.end !== undefined && at < scanned.end
    // Nothing but records that were withdrawn.
    if (items + torn === 0) return { isEmpty: !isCut, torn, damaged: isCut }
    if (scanned.end === undefined) {
      // Nobody writes here any more: the room that is left goes back, and the next start need not read all of it.
      if (at < sizeBytes) disk.resize(file, at)
      await disk.sync(file)
      // Without a seal the next start looks through it again.
      if (torn === 0) tryWrite(() => markSealed(disk, folder, number, at))
    }
    return { isEmpty: false, torn, damaged: isCut }
  } finally {
    disk.close(file)
  }
}

/** `nothing`: the file was not written further. */
function itemAt(
  disk: Disk,
  file: OpenFile,
  number: number,
  at: number,
  sizeBytes: number,
): { header: RecordHead; item: LoggedItem } | 'nothing' | 'damaged' {
  const bytes = Buffer.alloc(headOfRecordBytes)
  if (disk.read(file, bytes, at) < headOfRecordBytes || bytes.every((byte) => byte === 0)) return 'nothing'
  const header = readRecordHead(bytes)
  if (header === undefined || header.file !== number || header.kind === 'content') return 'damaged'
  const offset = at + headOfRecordBytes + header.roomBytes
  if (offset + header.payloadBytes > sizeBytes) return 'damaged'
  const meta = Buffer.alloc(header.metaBytes)
  const isRead = disk.read(file, meta, at + headOfRecordBytes) === meta.length
  if (header.kind !== 'withdrawn' && (!isRead || sumOfMeta(meta) !== header.metaSum)) return 'damaged'
  const place = { file: number, offset, sizeBytes: header.payloadBytes }
  return {
    header,
    item: { place, digest: { frontBytes: header.frontBytes, digest: new Uint8Array(header.digest) }, meta },
  }
}

function isWhole(disk: Disk, file: OpenFile, { place, digest }: LoggedItem): boolean {
  const { frontBytes } = digest
  if (frontBytes > place.sizeBytes) return false
  const front = frontBytes === 0 ? undefined : hashOf(disk, file, place.offset, frontBytes)
  const rest = hashOf(disk, file, place.offset + frontBytes, place.sizeBytes - frontBytes)
  if (rest === undefined || (frontBytes > 0 && front === undefined)) return false
  const whole = front === undefined ? rest : front.update(rest.digest())
  return Buffer.compare(whole.digest(), digest.digest) === 0
}

/** A SHA-256 of some bytes of a file, not ended; undefined: they are not there. */
function hashOf(disk: Disk, file: OpenFile, offset: number, sizeBytes: number): Hash | undefined {
  const hash = createHash('sha256')
  const buffer = Buffer.alloc(Math.min(pieceBytes, sizeBytes))
  for (let done = 0; done < sizeBytes; ) {
    const wanted = buffer.subarray(0, Math.min(buffer.length, sizeBytes - done))
    const count = disk.read(file, wanted, offset + done)
    if (count === 0) return undefined
    hash.update(wanted.subarray(0, count))
    done += count
  }
  return hash
}
