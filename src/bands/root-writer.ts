import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { canonicalJson } from '../format/canonical-json.js'
import { recordHeadBytes } from '../format/cdb64.js'
import { PackWriter } from '../format/message-pack.js'
import { checkCdb, checkMemory } from '../store/cdb-check.js'
import { CdbSearch, closeCdb, openCdb } from '../store/cdb-reader.js'
import { CdbWriter, cdbScratch } from '../store/cdb-writer.js'
import { ExternalSort } from '../store/external-sort.js'
import {
  type IndexManifest,
  type IndexPartition,
  manifestName,
  writeIndexManifest,
} from './index-manifest.js'
import { itemHeaderMaxBytes, placeMaxBytes, type RootRecord, readPlace, writePlace } from './root-record.js'

/** Each leaves out one record more of each crowded table, which moves all others: ids are not made for many numbers of slots. */
const triesMax = 16
/** Records looked up again in each partition after it was written. */
const samplesMax = 32
const keyBytes = 32
const sortOptions = { keyBytes, unique: true, bucketMaxBytes: 4 * 1024 * 1024, blockBytes: 64 * 1024 }

/** The summary of a finished index. */
export interface Written {
  readonly records: number
  /** SHA-256 (hex) over the partitions' names and digests: the same for the same records. */
  readonly contentDigest: string
  readonly manifest: IndexManifest
}

/**
 * Writes a root-transaction index of any number of records into an empty folder: sorted, one record an id, partitions by first
 * byte. The same records give the same files, but for the time in the manifest. Memory does not grow with their number.
 */
export class RootIndexWriter {
  readonly #sorter: ExternalSort
  readonly #out: PackWriter
  readonly #scratch = cdbScratch()
  readonly #memory = checkMemory()
  /** Records that are in no partition, because their ids crowd a table: they are hints, which can be missing. */
  leftOut = 0

  constructor(private readonly folder: string) {
    this.#sorter = new ExternalSort(folder, 'records', sortOptions)
    this.#out = new PackWriter(this.#sorter.memory)
  }

  /** Adds where an item (32 bytes of id) is, as seen at a height. Of two records of one item that of the higher block stays. */
  add(id: Uint8Array, place: RootRecord, height: number): void {
    const { itemOffset, dataOffset } = place
    const hasOffsets = itemOffset !== undefined && dataOffset !== undefined
    // Impossible sizes of a header: the record is wrong.
    if (hasOffsets && (dataOffset <= itemOffset || dataOffset - itemOffset > itemHeaderMaxBytes)) return
    const out = this.#out
    const start = this.#sorter.begin(id, placeMaxBytes)
    out.at = start
    writePlace(out, place)
    this.#sorter.end(out.at - start, height, hasOffsets ? 1 : 0)
  }

  /** Writes the partitions, checks each and reads some of it back, then the manifest. Throws where what was read differs. */
  async finish(createdAt: string, metadata: Readonly<Record<string, unknown>>): Promise<Written> {
    const partitions: IndexPartition[] = []
    try {
      for (let first = 0; first < 256; first += 1) {
        const partition = await this.#partition(first)
        if (partition !== undefined) partitions.push(partition)
      }
    } finally {
      this.#sorter.close()
    }
    const records = partitions.reduce((sum, { recordCount }) => sum + recordCount, 0)
    const manifest: IndexManifest = { version: 1, createdAt, totalRecords: records, partitions, metadata }
    await writeFile(join(this.folder, manifestName), writeIndexManifest(manifest), {
      flag: 'wx',
      mode: 0o644,
    })
    return { records, contentDigest: contentDigest(partitions), manifest }
  }

  /** Gives up. What was written stays in the folder. */
  close(): void {
    this.#sorter.close()
  }

  async #partition(first: number): Promise<IndexPartition | undefined> {
    const prefix = first.toString(16).padStart(2, '0')
    const filename = `${prefix}.cdb`
    const path = join(this.folder, filename)
    const left = new Set<string>()
    let written = await this.#records(first, path, left)
    for (let tries = 1; written !== undefined && written.writer.crowded.length > 0; tries += 1) {
      if (tries === triesMax) throw new Error(`${filename} has ids that were made to crowd a table`)
      for (const key of keysAt(path, written.writer.crowded)) left.add(key)
      await rm(path)
      written = await this.#records(first, path, left)
    }
    if (written === undefined) return undefined
    const { writer, samples } = written
    this.leftOut += left.size
    const checked = await checkCdb(path, { keyBytes, firstByte: first }, this.#memory)
    if (typeof checked === 'string') throw new Error(`${filename} was not written well: ${checked}`)
    if (checked.records !== writer.records) throw new Error(`${filename} has lost records`)
    samples.check(path)
    const { records: recordCount, sizeBytes: size, sha256 } = checked
    return { prefix, location: { type: 'file', filename }, recordCount, size, sha256 }
  }

  /** Writes one file of the records with this first byte but for those in `left` (hexadecimal); undefined: there are none. */
  async #records(
    first: number,
    path: string,
    left: ReadonlySet<string>,
  ): Promise<{ readonly writer: CdbWriter; readonly samples: Samples } | undefined> {
    const samples = new Samples()
    let writer: CdbWriter | undefined
    try {
      for (const bucket of this.#sorter.group(first)) {
        writer ??= new CdbWriter(path, this.#scratch)
        while (bucket.next()) {
          const { bytes, start, valueBytes } = bucket
          if (left.size > 0 && left.has(bytes.toString('hex', start, start + keyBytes))) continue
          writer.add(bytes, start, keyBytes, valueBytes)
          samples.offer(bytes, start, valueBytes)
        }
        // A bucket takes some hundredths of a second; others on this thread have their turn then.
        await turn()
      }
      writer?.finish()
    } finally {
      writer?.close()
    }
    return writer === undefined ? undefined : { writer, samples }
  }
}

/** The keys of the records at these positions, in hexadecimal. */
function keysAt(path: string, positions: readonly number[]): string[] {
  const file = openSync(path, 'r')
  try {
    return positions.map((position) => {
      const key = Buffer.alloc(keyBytes)
      readSync(file, key, 0, keyBytes, position + recordHeadBytes)
      return key.toString('hex')
    })
  } finally {
    closeSync(file)
  }
}

/** Some records, evenly from the whole partition, to be looked up afterwards. */
class Samples {
  /** Key and value in one. */
  #samples: Buffer[] = []
  #seen = 0
  #stride = 1

  offer(bytes: Buffer, start: number, valueBytes: number): void {
    this.#seen += 1
    if (this.#seen % this.#stride !== 0) return
    this.#samples.push(Buffer.from(bytes.subarray(start, start + keyBytes + valueBytes)))
    if (this.#samples.length < samplesMax * 2) return
    this.#samples = this.#samples.filter((_, index) => index % 2 === 1)
    this.#stride *= 2
  }

  check(path: string): void {
    const file = openCdb(path)
    if (typeof file === 'string') throw new Error(`${path} is ${file} after it was written`)
    const search = new CdbSearch()
    try {
      for (const sample of this.#samples) {
        const same =
          search.find(file, sample.subarray(0, keyBytes)) === 'found' &&
          sample.subarray(keyBytes).equals(search.bytes.subarray(search.start, search.end)) &&
          readPlace(search.bytes, search.start, search.end) !== undefined
        if (!same) throw new Error(`${path} does not say what was written`)
      }
    } finally {
      closeCdb(file)
    }
  }
}

/** SHA-256 over `<file> NUL <sha256> LF` of each partition, ascending. */
function contentDigest(partitions: readonly IndexPartition[]): string {
  const hash = createHash('sha256')
  for (const { prefix, sha256 } of partitions) hash.update(`${prefix}.cdb\0${sha256}\n`)
  return hash.digest('hex')
}

/** First 12 hex digits of SHA-256 over content digest and canonical metadata: the end of a band's id. */
export function bandIdDigest(digest: string, metadata: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(digest).update(canonicalJson(metadata)).digest('hex').slice(0, 12)
}
