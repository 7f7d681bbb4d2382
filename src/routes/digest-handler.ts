import type { Catalog } from '../catalog/catalog-messages.js'
import { type Id, idBytes, parseId } from '../format/id.js'
import type { Delivery } from '../gateway/deliver.js'
import type { Guard } from '../gateway/guard.js'
import type { Located, Locator } from '../gateway/locator.js'
import { enter } from '../gateway/steps.js'
import type { Described } from '../http/openapi.js'
import { answerGone, answerText, closeOpened } from '../serving/exchange-answers.js'
import type { Naming } from '../serving/naming.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'

/** A digest always means the same bytes, whatever happens to the block of their transaction. */
const forever: Naming = { lines: [], block: '', caching: { stable: true } }

/** Answers with content by the SHA-256 of its bytes, as base64url; out of the local store only. */
export class DigestHandler {
  readonly #path: string
  /** What it answers. */
  readonly operations: readonly Described[]

  constructor(
    private readonly parts: {
      readonly requestLog: RequestLog
      readonly catalog: Pick<Catalog, 'holder'>
      readonly locator: Locator
      readonly delivery: Delivery
      readonly guard: Guard | undefined
    },
    pathPrefix: string,
  ) {
    this.#path = `${pathPrefix}/digest/`
    this.operations = [
      {
        path: `${this.#path}{digest}`,
        methods: ['GET', 'HEAD'],
        summary: 'Content by the SHA-256 of its bytes, from the local store only',
        statuses: [200, 206, 302, 304, 400, 402, 403, 404, 416, 429, 451],
        type: '*/*',
      },
    ]
  }

  /** What stands where a digest should; undefined where the path is not of this route. */
  textOf(path: string): string | undefined {
    const { length } = this.#path
    if (path.length <= length || path.slice(0, length).toLowerCase() !== this.#path) return undefined
    return path.slice(length).replace(/\/$/, '')
  }

  /** The id that stands for a digest on this machine. */
  holderOf(text: string): Id | undefined {
    const spelled = parseId(text)
    return spelled === undefined ? undefined : this.parts.catalog.holder(idBytes(spelled))
  }

  handle(exchange: Exchange, text: string): void {
    const { requestLog, catalog, delivery, guard } = this.parts
    // A digest is spelled as ids are: 32 bytes of canonical base64url.
    const spelled = parseId(text)
    if (spelled === undefined) {
      answerText(requestLog, exchange, { status: 400, text: `Invalid digest: ${text}` }, { fault: 'client' })
      return
    }
    const digest = idBytes(spelled)
    if (guard?.blocksDigest(digest) === true) {
      answerText(requestLog, exchange, guard.answer(`digest: ${spelled}`), { fault: 'client' })
      return
    }
    const id = catalog.holder(digest)
    const found = id === undefined ? undefined : this.#locate(exchange, id, digest)
    if (id === undefined || found === undefined)
      delivery.unknown(exchange, 'no content with this digest is here')
    else if (found.at === 'store' && found.sound) this.#serve(exchange, id, found)
    else delivery.run(exchange, this.#checked(exchange, id, digest, found))
  }

  /** A client that requests by digest relies on it, so the file is checked before it is served, whatever its size. */
  async #checked(exchange: Exchange, id: Id, digest: Uint8Array, unsure: Located): Promise<void> {
    closeOpened(exchange)
    if (unsure.at === 'store' || unsure.at === 'unchecked') {
      enter(exchange, 'check')
      await this.parts.locator.check(unsure.entry)
    }
    if (exchange.reply.aborted) return answerGone(this.parts.requestLog, exchange)
    const found = this.#locate(exchange, id, digest)
    if (found?.at === 'store') this.#serve(exchange, id, found)
    else this.parts.delivery.unknown(exchange, 'content with this digest is no longer here')
  }

  /** Undefined where the id means other bytes by now. */
  #locate(exchange: Exchange, id: Id, digest: Uint8Array): Located | undefined {
    const found = this.parts.locator.locate(exchange, id, 'take')
    if (found.at === 'nowhere') return undefined
    const known = found.entry.attributes.digest
    if (known !== undefined && Buffer.compare(known, digest) === 0) return found
    closeOpened(exchange)
    return undefined
  }

  #serve(exchange: Exchange, id: Id, found: Located): void {
    exchange.naming = forever
    this.parts.delivery.serve(exchange, id, found)
  }
}
