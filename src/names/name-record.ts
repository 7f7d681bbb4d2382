import { wholeOf } from '../chain/json-fields.js'
import { parseId } from '../format/id.js'
import type { NameRecord } from './names-port.js'

/** A record as it came from outside: numbers as such or as decimal text. */
export type RawRecord = Readonly<Record<keyof NameRecord, unknown>>

/** Longest TTL that is accepted: 30 days. */
export const ttlMaxSeconds = 2_592_000

/** TTL where the record has none, as other gateways of the network use it. */
const ttlUsualSeconds = 900

/** Addresses of tokens and programs: base58 or base64url. They are sent on as header values. */
const tokenShape = /^[\w-]{1,128}$/

/** Reads a record; malformed optional fields are left out. Undefined without a well-formed id. */
export function readRecord(raw: Partial<RawRecord>): NameRecord | undefined {
  const id = typeof raw.id === 'string' ? parseId(raw.id) : undefined
  if (id === undefined) return undefined
  const undernameLimit = wholeOf(raw.undernameLimit)
  const recordIndex = wholeOf(raw.recordIndex)
  const antId = tokenOf(raw.antId)
  const antProgramId = tokenOf(raw.antProgramId)
  return {
    id,
    ttlSeconds: Math.min(wholeOf(raw.ttlSeconds) ?? ttlUsualSeconds, ttlMaxSeconds),
    ...(antId === undefined ? {} : { antId }),
    ...(antProgramId === undefined ? {} : { antProgramId }),
    ...(undernameLimit === undefined ? {} : { undernameLimit }),
    ...(recordIndex === undefined ? {} : { recordIndex }),
  }
}

function tokenOf(value: unknown): string | undefined {
  return typeof value === 'string' && tokenShape.test(value) ? value : undefined
}
