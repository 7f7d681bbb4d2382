import { decodeBase64url, encodeBase64url } from './base64url.js'
import { type Id, parseId } from './id.js'
import { parsedJson } from './json.js'
import { type Refusal, refuse } from './refusal.js'
import type { Tag } from './tag.js'

/** A base-layer transaction. Binary fields are decoded; amounts are in winston. */
export interface Transaction {
  readonly format: 1 | 2
  readonly id: Id
  /** The anchor: a block hash (48 bytes), the wallet's last transaction (32 bytes), or nothing. Up to 48 bytes. */
  readonly lastTx: Uint8Array
  readonly owner: Uint8Array
  readonly tags: readonly Tag[]
  /** 32 bytes, or none; the network has taken any up to 32. */
  readonly target: Uint8Array
  readonly quantity: bigint
  /** The data itself where the JSON carries it; empty otherwise, whatever `dataSize` says. */
  readonly data: Uint8Array
  /** Bytes of the data. */
  readonly dataSize: number
  /** 32 bytes, or none. */
  readonly dataRoot: Uint8Array
  readonly reward: bigint
  readonly signature: Uint8Array
  /** The redenomination that the amounts are counted in; 0 (all transactions so far): none. */
  readonly denomination: number
}

/**
 * Nodes refuse tags of more than 2048 bytes in all; a tag takes at least one byte, but old transactions also have
 * empty tags, so the limit is twice that.
 */
const tagsMax = 4096
/** Values of its JSON: its fields, three for each tag, and some that are not known here. */
const valuesMax = 4 * tagsMax

function malformed(message: string): Refusal {
  return refuse('malformed', 'client', `transaction: ${message}`)
}

type Fields = Record<string, unknown>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Collects what is wrong while fields are read, so that each field is one line below. */
class Reading {
  refusal: Refusal | undefined

  constructor(private readonly fields: Fields) {}

  fail(message: string): void {
    this.refusal ??= malformed(message)
  }

  /** A base64url field of at most `sizeMax` bytes; absent is no bytes. */
  bytes(name: string, sizeMax = Number.POSITIVE_INFINITY): Uint8Array {
    const value = this.fields[name] ?? ''
    const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined
    if (bytes === undefined) this.fail(`${name} is not base64url`)
    else if (bytes.length > sizeMax) {
      this.fail(`${name} has ${bytes.length} bytes, more than ${sizeMax}`)
    } else return bytes
    return new Uint8Array(0)
  }

  /** A decimal text without sign or needless zeros; absent is 0. */
  amount(name: string): bigint {
    const value = this.fields[name] ?? '0'
    if (typeof value === 'string' && /^(?:0|[1-9]\d{0,38})$/.test(value)) return BigInt(value)
    this.fail(`${name} is not a decimal number`)
    return 0n
  }

  tags(): Tag[] {
    const value = this.fields.tags ?? []
    if (!Array.isArray(value) || value.length > tagsMax) {
      this.fail('tags is not a list, or too long')
      return []
    }
    return value.map((tag: unknown, index) => {
      const name = isFields(tag) && typeof tag.name === 'string' ? decodeBase64url(tag.name) : undefined
      const text = isFields(tag) && typeof tag.value === 'string' ? decodeBase64url(tag.value) : undefined
      if (name === undefined || text === undefined) this.fail(`tag ${index} is not base64url`)
      return { name: name ?? new Uint8Array(0), value: text ?? new Uint8Array(0) }
    })
  }

  format(): 1 | 2 {
    const value = this.fields.format ?? 1
    if (value !== 1 && value !== 2) this.fail('format is neither 1 nor 2')
    return value === 2 ? 2 : 1
  }

  denomination(): number {
    const value = this.fields.denomination ?? 0
    const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
    this.fail('denomination is not a number')
    return 0
  }

  id(): Id {
    const id = typeof this.fields.id === 'string' ? parseId(this.fields.id) : undefined
    if (id === undefined) this.fail('id is not 43 characters of base64url')
    return id ?? ('' as Id)
  }
}

function dataSizeOf(reading: Reading, fields: Fields, data: Uint8Array): number {
  const size = fields.data_size === undefined ? BigInt(data.length) : reading.amount('data_size')
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) reading.fail('data_size is beyond 2^53')
  if (data.length > 0 && BigInt(data.length) !== size) {
    reading.fail(`data has ${data.length} bytes, but data_size says ${size}`)
  }
  return Number(size)
}

/**
 * Reads the JSON of a transaction as nodes write and take it. Shapes only: base64url must be canonical, amounts
 * decimal texts, fields no longer than the network allows. The id and the signature are checked in
 * proof/transaction-proof.ts. Unknown fields are ignored. Old transactions lack `format` (1), `data_size` and `data_root`.
 */
export function parseTransaction(json: unknown): Transaction | Refusal {
  if (!isFields(json)) return malformed('not a JSON object')
  const reading = new Reading(json)
  const data = reading.bytes('data')
  const transaction: Transaction = {
    format: reading.format(),
    id: reading.id(),
    lastTx: reading.bytes('last_tx', 48),
    owner: reading.bytes('owner', 512),
    tags: reading.tags(),
    target: reading.bytes('target', 32),
    quantity: reading.amount('quantity'),
    data,
    dataSize: dataSizeOf(reading, json, data),
    dataRoot: reading.bytes('data_root', 32),
    reward: reading.amount('reward'),
    signature: reading.bytes('signature', 512),
    denomination: reading.denomination(),
  }
  if (transaction.dataRoot.length % 32 !== 0) reading.fail('data_root has neither 0 nor 32 bytes')
  return reading.refusal ?? transaction
}

/** Reads the JSON text of a transaction: parseTransaction for bytes off the wire. */
export function parseTransactionText(text: string): Transaction | Refusal {
  const json = parsedJson(text, { values: valuesMax })
  return json === undefined
    ? malformed('not JSON, or with more than a transaction has')
    : parseTransaction(json)
}

/** The JSON of a transaction as nodes write it. `withData: false` leaves `data` empty, as nodes do for large ones. */
export function transactionJson(
  tx: Transaction,
  options: { readonly withData?: boolean } = {},
): Record<string, unknown> {
  const json: Record<string, unknown> = {
    format: tx.format,
    id: tx.id,
    last_tx: encodeBase64url(tx.lastTx),
    owner: encodeBase64url(tx.owner),
    tags: tx.tags.map((tag) => ({ name: encodeBase64url(tag.name), value: encodeBase64url(tag.value) })),
    target: encodeBase64url(tx.target),
    quantity: tx.quantity.toString(),
    data: options.withData === false ? '' : encodeBase64url(tx.data),
    data_size: tx.dataSize.toString(),
    data_root: encodeBase64url(tx.dataRoot),
    reward: tx.reward.toString(),
    signature: encodeBase64url(tx.signature),
  }
  return tx.denomination === 0 ? json : { ...json, denomination: tx.denomination.toString() }
}
