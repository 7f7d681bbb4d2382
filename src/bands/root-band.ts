import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isMissing } from '../store/blobs.js'
import { checkCdb } from '../store/cdb-check.js'
import {
  bandManifestMaxBytes,
  type IndexManifest,
  manifestName,
  readIndexManifest,
} from './index-manifest.js'
import { supersededBy } from './index-names.js'
import { type BandAccount, type BandKind, type HeightRange, rootTxKind } from './publication.js'
import { readPlace } from './root-record.js'

/** Bands of root transactions: `manifest.json` and one CDB64 file for each first byte of ids. */
export const rootTxBands: BandKind = {
  ...rootTxKind,
  async describe(folder) {
    const manifest = await manifestOf(folder)
    return isRefusal(manifest) ? manifest : accountOf(manifest)
  },
  async check(folder) {
    const manifest = await manifestOf(folder)
    if (isRefusal(manifest)) return manifest
    let records = 0
    for (const partition of manifest.partitions) {
      const name = `${partition.prefix}.cdb`
      const firstByte = Number.parseInt(partition.prefix, 16)
      const value = (bytes: Buffer, start: number, end: number): boolean =>
        readPlace(bytes, start, end) !== undefined
      const checked = await checkCdb(join(folder, name), { keyBytes: 32, firstByte, value })
      if (typeof checked === 'string') return wrong(`${name}: ${checked}`)
      if (checked.records !== partition.recordCount) return wrong(`${name} has another number of records`)
      if (checked.sizeBytes !== partition.size) return wrong(`${name} has another size`)
      if (partition.sha256 !== undefined && partition.sha256 !== checked.sha256) {
        return wrong(`${name} has another digest`)
      }
      records += checked.records
    }
    return records === manifest.totalRecords ? undefined : wrong('another number of records in all')
  },
}

function wrong(message: string): Refusal {
  return refuse('malformed', 'upstream', `band: ${message}`)
}

/** The manifest of the band in a folder; a refusal where the folder has other files than the manifest names. */
async function manifestOf(folder: string): Promise<IndexManifest | Refusal> {
  let bytes: Buffer
  try {
    bytes = await readFile(join(folder, manifestName))
  } catch (error) {
    if (isMissing(error)) return wrong('no manifest')
    throw error
  }
  if (bytes.length > bandManifestMaxBytes) return wrong('its manifest is over 256 KiB')
  const manifest = readIndexManifest(bytes)
  if (isRefusal(manifest)) return manifest
  // A published band may name only its own files. With addresses in it a publisher could make us send requests to any
  // server.
  const names = manifest.partitions.flatMap(({ prefix, location }) =>
    location.type === 'file' && location.filename === `${prefix}.cdb` ? [location.filename] : [],
  )
  if (names.length !== manifest.partitions.length) return wrong('a partition is not a file of the band')
  const expected = [...names, manifestName].sort()
  const present = (await readdir(folder)).sort()
  return present.join('/') === expected.join('/')
    ? manifest
    : wrong('another set of files than the manifest names')
}

function accountOf({ partitions, totalRecords, metadata }: IndexManifest): BandAccount {
  const range = readRange(metadata?.heightRange)
  const supersedes = supersededBy(metadata)
  return {
    files: [...partitions.map(({ prefix }) => `${prefix}.cdb`), manifestName].sort(),
    records: totalRecords,
    supersedes,
    ...(range === undefined ? {} : { heightRange: range }),
    ...(supersedes.length === 0 ? {} : { metadata: { supersedes } }),
  }
}

function readRange(given: unknown): HeightRange | undefined {
  if (!Array.isArray(given) || given.length !== 2) return undefined
  const [from, to] = given as [unknown, unknown]
  const isHeight = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
  return isHeight(from) && (to === null || (isHeight(to) && to >= from)) ? [from, to] : undefined
}
