import * as z from 'zod'
import { decodeBase64url } from '../../format/base64url.js'
import { parseId } from '../../format/id.js'

/** Headers of items announced in one go; 10 MB hold about so many. */
export const itemsMax = 10_000

const object = { error: 'Must provide a JSON object' }
const id = z.string({ error: "Must provide 'id'" }).transform((text, context) => {
  const read = parseId(text)
  if (read !== undefined) return read
  context.addIssue({ code: 'custom', message: "Must provide 'id'" })
  return z.NEVER
})
/** Body of the order to index a transaction. */
export const transactionBody = z.object({ id }, object)
/** Body of the order to forget announced items. */
export const goneBody = z.array(id, { error: 'Must provide array of ids' }).max(itemsMax)
/** Body of the order to open a bundle. */
export const bundleBody = z.object(
  { id, bypassFilter: z.boolean({ error: "'bypassFilter' must be a boolean" }).default(true) },
  object,
)

/** Base64url, as bytes. */
const bytes = (minBytes: number, maxBytes: number) =>
  z.string().transform((text, context) => {
    const read = decodeBase64url(text)
    if (read !== undefined && read.length >= minBytes && read.length <= maxBytes) return read
    context.addIssue({ code: 'custom', message: 'Must provide array of data item headers' })
    return z.NEVER
  })
const item = z.object({
  id: bytes(32, 32),
  owner: bytes(1, 2048),
  signature: bytes(1, 2048),
  data_size: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  tags: z
    .array(z.object({ name: bytes(0, 1024), value: bytes(0, 3072) }))
    .max(128)
    .default([]),
  target: bytes(0, 32).optional(),
  anchor: bytes(0, 32).optional(),
})
/** Body of the order to announce items. */
export const itemsBody = z.array(item).max(itemsMax)
