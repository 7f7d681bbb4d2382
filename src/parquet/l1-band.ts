import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { expected } from '../format/bug.js'
import { isEntryName } from '../format/entry-name.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { readRegular } from '../store/regular-file.js'
import { l1Schema, lookupFile, lookupNames, tableFile, tableNames } from './l1-layout.js'
import type { WrittenTable } from './parquet-writer.js'

/** `band.json` of a Parquet band. */
export interface L1Band {
  readonly version: 1
  readonly schema: typeof l1Schema
  /** Inclusive. */
  readonly heightRange: readonly [number, number]
  readonly tables: Readonly<Record<(typeof tableNames)[number], WrittenTable>>
  readonly lookups: Readonly<Record<(typeof lookupNames)[number], WrittenTable>>
  readonly supersedes?: readonly string[] | undefined
  /** ISO 8601. */
  readonly createdAt: string
}

export const bandFile = 'band.json'
const bandMaxBytes = 64 * 1024
const supersedesMax = 64
/** Heights are 4 bytes in the index, the highest means that there is none. */
const heightMax = 0xffff_fffe

/** Bands of whole ranges, and within the range that is not whole yet bands of parts; the last may be cut short. */
export const gridBlocks = { range: 100_000, part: 5000 } as const

const height = z.number().int().min(0).max(heightMax)
const table = z.object({
  rows: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  rowDigest: z.string().regex(/^[0-9a-f]{64}$/),
})
const shape = z.object({
  version: z.literal(1),
  schema: z.literal(l1Schema),
  heightRange: z.tuple([height, height]).refine(([from, to]) => from <= to && from % gridBlocks.part === 0),
  tables: z.object({
    blocks: table,
    block_transactions: table,
    transactions: table,
    tags: table,
    wallets: table,
  }),
  lookups: z.object({ tx_id: table, wallet: table, tag: table }),
  supersedes: z.array(z.string().refine(isEntryName)).max(supersedesMax).optional(),
  createdAt: z.string().max(64),
})

/** Names of the files that a band of this layout has, in bytewise order: exactly these. */
export const l1Files: readonly string[] = [
  bandFile,
  ...tableNames.map(tableFile),
  ...lookupNames.map(lookupFile),
].sort()

/** Reads `band.json` in `folder` and checks it, and that the folder holds the layout's files and no others. */
export async function readL1Band(folder: string): Promise<L1Band | Refusal> {
  const bad = (why: string): Refusal => refuse('malformed', 'upstream', `${folder}: ${why}`)
  try {
    const names = (await readdir(folder)).sort()
    if (names.join() !== l1Files.join()) return bad(`not the files of a band of layout ${l1Schema}`)
    const path = join(folder, bandFile)
    const bytes = await readRegular(path, bandMaxBytes)
    if (bytes === undefined) return bad(`${bandFile} is not a regular file`)
    if (bytes.length > bandMaxBytes) return bad(`${bandFile} is too long`)
    const read = shape.safeParse(JSON.parse(bytes.toString()))
    return read.success ? read.data : bad(`${bandFile}: ${read.error.issues[0]?.path.join('.')} is wrong`)
  } catch (error) {
    // Not JSON, or a file that is missing or cannot be read.
    return bad(String(error instanceof SyntaxError ? error : expected(error)))
  }
}

/**
 * The digest of a band's rows, 64 characters of hex: SHA-256 over the range as JSON and a line `table:rows:rowDigest`
 * of each of the five tables, by name. The same for everybody who builds the band of these heights.
 */
export function l1Digest(band: Pick<L1Band, 'heightRange' | 'tables'>): string {
  const lines = tableNames.map((name) => `${name}:${band.tables[name].rows}:${band.tables[name].rowDigest}`)
  return createHash('sha256')
    .update([JSON.stringify(band.heightRange), ...lines.sort()].join('\n'))
    .digest('hex')
}

/** Id of a band: `l1-h<from>-<to>-<8 hex of the publisher>-<12 hex of the rows>`. */
export function l1Id(band: Pick<L1Band, 'heightRange' | 'tables'>, publisher: string): string {
  const [from, to] = band.heightRange
  const tag = createHash('sha256').update(publisher).digest('hex').slice(0, 8)
  return `l1-h${from}-${to}-${tag}-${l1Digest(band).slice(0, 12)}`
}

/**
 * The ranges that bands should cover for an index of the heights `first` to `top`: whole ranges of 100,000, behind them parts of
 * 5000, the last cut short at `top`. A range begins on the grid, so what lies in front of the first line is left out.
 */
export function l1Ranges(first: number, top: number): [from: number, to: number][] {
  const { range, part } = gridBlocks
  const found: [number, number][] = []
  let from = Math.ceil(first / part) * part
  while (from <= top) {
    const whole = from % range === 0 && from + range - 1 <= top
    const to = Math.min(from + (whole ? range : part) - 1, top)
    found.push([from, to])
    from = to + 1
  }
  return found
}
