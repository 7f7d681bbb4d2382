import { createRequire } from 'node:module'
import type * as z from 'zod'
import { parseId } from '../format/id.js'
import { parsedBytes } from '../format/json.js'
import { type Refusal, refuse } from '../format/refusal.js'

/** Larger manifests are not read: 256 partitions with the longest addresses take 600 KB. */
export const manifestMaxBytes = 1024 * 1024
/** The same of bands, whose partitions are files beside them: 256 of them take 60 KB. */
export const bandManifestMaxBytes = 256 * 1024
export const manifestName = 'manifest.json'

function makeShape({ z }: typeof import('zod')) {
  const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
  const id = z.string().refine((text) => parseId(text) !== undefined)

  const location = z.discriminatedUnion('type', [
    z.object({ type: z.literal('file'), filename: z.string().regex(/^[0-9a-f]{2}\.cdb$/) }),
    z.object({ type: z.literal('http'), url: z.string().max(2048) }),
    z.object({ type: z.literal('arweave-id'), id }),
    z.object({
      type: z.literal('arweave-byte-range'),
      rootTxId: id,
      dataOffsetInRootTx: count,
      dataItemId: id.optional(),
    }),
  ])

  return z.object({
    version: z.literal(1),
    createdAt: z.string().min(1).max(64),
    totalRecords: count,
    partitions: z
      .array(
        z.object({
          prefix: z.string().regex(/^[0-9a-f]{2}$/),
          location,
          recordCount: count,
          size: count.min(1),
          sha256: z
            .string()
            .regex(/^[0-9a-f]{64}$/)
            .optional(),
        }),
      )
      .max(256)
      .refine((list) => new Set(list.map(({ prefix }) => prefix)).size === list.length),
    metadata: z.record(z.string(), z.unknown()).optional(),
  })
}

let made: ReturnType<typeof makeShape> | undefined

/** Made with the first manifest: zod takes 6.7 MB of each edge thread, and most never read one. */
function shape(): ReturnType<typeof makeShape> {
  made ??= makeShape(createRequire(import.meta.url)('zod') as typeof import('zod'))
  return made
}

/**
 * `manifest.json` of an index in partitions: one CDB64 file for each first byte that keys have. Where a partition lies may be a
 * file beside the manifest, an address, an item of the chain, or a stretch of one.
 */
export type IndexManifest = z.infer<ReturnType<typeof makeShape>>
export type IndexPartition = IndexManifest['partitions'][number]

/** Reads a manifest; unknown fields are ignored. */
export function readIndexManifest(bytes: Uint8Array): IndexManifest | Refusal {
  if (bytes.length > manifestMaxBytes) return refuse('too-large', 'upstream', 'index manifest: over 1 MiB')
  const parsed = parsedBytes(bytes, { values: 20_000 })
  if (parsed === undefined)
    return refuse('malformed', 'upstream', 'index manifest: not JSON, or with too many values')
  const checked = shape().safeParse(parsed)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  const where = issue?.path.join('.').slice(0, 100)
  return refuse('malformed', 'upstream', `index manifest: ${where}: ${issue?.message.slice(0, 100)}`)
}

/** The text of a manifest, as published ones are written. */
export function writeIndexManifest(manifest: IndexManifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`
}
