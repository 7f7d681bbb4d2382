import * as z from 'zod'

/** Characters of a reason. */
const notesMax = 4096
const sourceMax = 256

const object = { error: 'Must provide a JSON object' }
const ground = {
  source: z
    .string({ error: "'source' must be a non-empty string" })
    .trim()
    .min(1, "'source' must be a non-empty string")
    .max(sourceMax, "'source' exceeds maximum length"),
  notes: z.string({ error: "'notes' must be a string" }).max(notesMax, "'notes' exceeds maximum length"),
}
const dataShape = {
  id: z.string({ error: "'id' and 'hash' must be strings" }).nullish(),
  hash: z.string({ error: "'id' and 'hash' must be strings" }).nullish(),
}
const needsOne = { error: "Must provide 'id' or 'hash'" }
const hasOne = ({
  id,
  hash,
}: {
  id?: string | null | undefined
  hash?: string | null | undefined
}): boolean => (id ?? '') !== '' || (hash ?? '') !== ''
const name = z.string({ error: "'name' must be a non-empty string" })

/**
 * What is blocked or released by id or hash; of an order to block it is checked before `grounds`, so that its errors are the
 * ones reported.
 */
export const unblockData = z.object(dataShape, object).refine(hasOne, needsOne)
export const grounds = z.object(ground, object)
export const unblockName = z.object({ name }, object)
