import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { encodeBase64url } from '../../format/base64url.js'
import { expected } from '../../format/bug.js'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { headersOfPayload } from '../../format/media-type.js'
import { Upstream } from '../../http/upstream.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { writePatiently } from '../../store/patient-write.js'
import { isGone, type Uploads } from '../records/uploads.js'
import { readAnnouncement } from './read-announcement.js'

export interface GatewayNewsParts {
  readonly environment: Environment
  readonly uploads: Uploads
  readonly logFolder: string
  /** Where the gateway takes orders, without a slash at the end: `https://gateway.example/gateway/admin`. */
  readonly url: string
  /** Its admin key. */
  readonly key: string
  /** Modulus of the key of this service, base64url. */
  readonly publicKey: string
  readonly clock: Clock
  readonly logger: Log
  readonly closing: AbortSignal
}

/** Headers or ids of one message. */
const batchMax = 100
/** What waits at most: a gateway that is away for longer finds the rest in the blocks. */
const waitingMax = 200_000
/** With those that are to be forgotten: a gateway that is not notified forgets them by itself, days later. */
const waitingWithGoneMax = 400_000
const limitMs = 30_000
const againMs = 1000
const againMaxMs = 300_000

const itemKind = 1
const bundleKind = 2
/** After those above, so that no removal is sent before its item. */
const goneKind = 3
const none = new Uint8Array(0)

type Sent = 'done' | 'refused' | 'later'

/**
 * Sends news to a gateway on another machine: accepted items (served at once), bundles in blocks (to be opened), and items that a
 * sandbox has removed (to be forgotten). News stays on disk until the gateway has confirmed it.
 */
export class GatewayNews {
  readonly #table: Table
  readonly #upstream = new Upstream({ connections: 2, connect: { timeout: limitMs }, pipelining: 1 })
  #wake: () => void = () => undefined

  constructor(private readonly parts: GatewayNewsParts) {
    this.#table = parts.environment.table('news')
  }

  /** Only inside a transaction of the environment: `wake` when that is committed. */
  addItem(id: Id): void {
    this.#add(itemKind, id)
  }

  addBundle(id: Id): void {
    this.parts.environment.write(() => this.#add(bundleKind, id))
    this.wake()
  }

  /** An item is kept no more, and will be in no block. Only inside a transaction, as `addItem`. */
  addGone(id: Id): void {
    this.#add(goneKind, id)
  }

  /** Wakes the sender: there may be news. */
  wake(): void {
    this.#wake()
  }

  #add(kind: number, id: Id): void {
    const most = kind === itemKind ? waitingMax : kind === goneKind ? waitingWithGoneMax : Infinity
    if (this.#table.count() >= most) return
    const key = Buffer.alloc(41)
    key.writeUInt8(kind)
    key.writeBigUInt64BE(BigInt(this.parts.clock.now()), 1)
    key.set(idBytes(id), 9)
    this.#table.put(key, none)
  }

  /** Sends news until `closing`. */
  async run(): Promise<void> {
    const { closing, logger } = this.parts
    let failures = 0
    while (!closing.aborted) {
      const outcome = await this.#sendSome()
      if (outcome === 'idle') await this.#woken()
      else if (outcome === 'later') {
        failures += 1
        if (failures === 5)
          logger.warn({ url: this.parts.url }, 'uploads cannot be reported to the gateway elsewhere')
        await pause(Math.min(againMs * 2 ** (failures - 1), againMaxMs), closing)
      } else failures = 0
    }
    await this.#upstream.destroy()
  }

  #woken(): Promise<void> {
    const { closing } = this.parts
    return new Promise((resolve) => {
      // What would stay at the signal would be one more with each message.
      const wake = (): void => {
        closing.removeEventListener('abort', wake)
        resolve()
      }
      closing.addEventListener('abort', wake, { once: true })
      this.#wake = wake
      if (this.#table.count() > 0 || closing.aborted) wake()
    })
  }

  async #sendSome(): Promise<Sent | 'idle'> {
    const [first] = this.#table.from(undefined, 1)
    if (first === undefined) return 'idle'
    const kind = first.key[0] ?? 0
    const atOnce = kind === bundleKind ? 1 : batchMax
    const keys = this.#table.from(first.key, atOnce).map(({ key }) => key)
    const batch = keys.filter((key) => key[0] === kind)
    const ids = batch.map((key) => idOfBytes(key.subarray(9)))
    const sent =
      kind === itemKind
        ? await this.#send('queue-data-item', this.#headers(ids))
        : kind === bundleKind
          ? await this.#send('queue-bundle', { id: ids[0] })
          : await this.#forget(ids)
    if (sent === 'later') return sent
    const { environment, closing, logger } = this.parts
    const removeSent = (): void =>
      environment.write(() => {
        for (const key of batch) this.#table.remove(key)
      })
    return (await writePatiently(removeSent, closing, logger)) ? sent : 'later'
  }

  /** An item that was uploaded again since is not removed there: items are sent before removals. */
  async #forget(ids: readonly Id[]): Promise<Sent> {
    const gone = ids.filter((id) => {
      const item = this.parts.uploads.find(id)
      return item === undefined || isGone(item)
    })
    return gone.length === 0 ? 'done' : this.#send('forget-data-item', gone)
  }

  /** Items without bytes here are in a block already, so no news is needed. */
  #headers(ids: readonly Id[]): object[] {
    const { uploads, logFolder } = this.parts
    return ids.flatMap((id) => {
      const item = uploads.find(id)
      const kept =
        item === undefined || item.released === true ? undefined : readAnnouncement(logFolder, item)
      if (kept === undefined) return []
      const { owner, signature, target, anchor, tags, headerSize } = kept.header
      const { contentType: type } = headersOfPayload(tags)
      return [
        {
          id,
          owner: encodeBase64url(owner),
          owner_address: normalizedAddress(owner),
          signature: encodeBase64url(signature),
          data_size: kept.sizeBytes - headerSize,
          ...(target.length === 0 ? {} : { target: encodeBase64url(target) }),
          ...(anchor.length === 0 ? {} : { anchor: encodeBase64url(anchor) }),
          ...(type === undefined ? {} : { content_type: type }),
          tags: tags.map(({ name, value }) => ({
            name: encodeBase64url(name),
            value: encodeBase64url(value),
          })),
        },
      ]
    })
  }

  async #send(order: string, body: object): Promise<Sent> {
    const { url, key, publicKey, clock, closing, logger } = this.parts
    const target = new URL(`${url}/${order}`)
    const late = new AbortController()
    const timer = clock.after(limitMs, () => late.abort())
    const end = (): void => late.abort()
    closing.addEventListener('abort', end, { once: true })
    try {
      const answer = await this.#upstream.request({
        origin: target.origin,
        path: target.pathname,
        method: 'POST',
        signal: late.signal,
        body: JSON.stringify(body),
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'x-bundlr-public-key': publicKey,
        },
      })
      await answer.body.dump()
      const status = answer.statusCode
      if (status < 300) return 'done'
      // A wrong key may be corrected, and a full queue gets room. No other refusal changes when the news is repeated.
      if (status >= 500 || status === 401 || status === 403 || status === 408 || status === 429)
        return 'later'
      logger.warn({ status, order }, 'the gateway elsewhere refused a report of uploads')
      return 'refused'
    } catch (error) {
      logger.debug({ err: expected(error) }, 'the gateway elsewhere does not answer')
      return 'later'
    } finally {
      timer.cancel()
      closing.removeEventListener('abort', end)
    }
  }
}
