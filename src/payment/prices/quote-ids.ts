import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { MoneyLedger } from '../../ledger/ledger-port.js'

const kind = 'card-quote-key'
const key = 'key'
/** So many of the 16 bytes of a UUID are random; the others name the owner. */
const randomPart = 9

function uuidOf(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/**
 * Ids of quotes, by which a ledger recognizes its own, also after they were removed. An id is a UUID of version 4 whose last 7
 * bytes are an HMAC over the first 9, under a key in the ledger. 66 bits are random, so no id can be guessed.
 */
export class QuoteIds {
  #secret: Promise<Buffer> | undefined

  constructor(private readonly ledger: MoneyLedger) {}

  async make(): Promise<string> {
    const bytes = randomBytes(16)
    bytes[6] = 0x40 | ((bytes[6] ?? 0) & 0x0f)
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
    bytes.set(await this.#seal(bytes), randomPart)
    return uuidOf(bytes)
  }

  /** Whether this ledger has made the name. False for names of versions before this rule. */
  async isOwn(id: string): Promise<boolean> {
    if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return false
    const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
    return timingSafeEqual(await this.#seal(bytes), bytes.subarray(randomPart))
  }

  async #seal(bytes: Buffer): Promise<Buffer> {
    this.#secret ??= this.#read().catch((error: unknown) => {
      this.#secret = undefined
      throw error
    })
    const mac = createHmac('sha256', await this.#secret)
      .update(bytes.subarray(0, randomPart))
      .digest()
    return mac.subarray(0, 16 - randomPart)
  }

  /** Made once for a ledger. Of two services that start at once, one reads the key of the other. */
  async #read(): Promise<Buffer> {
    const made = JSON.stringify(randomBytes(32).toString('base64url'))
    const known = await this.ledger.record(kind, key)
    if (known === undefined)
      await this.ledger.commit({ transfers: [], records: [{ kind, key, value: made, expected: 0 }] })
    const kept = known ?? (await this.ledger.record(kind, key))
    if (kept === undefined) throw new Error('the key of the quotes is not kept')
    return Buffer.from(JSON.parse(kept.value) as string, 'base64url')
  }
}
