import type { Catalog } from '../catalog/catalog-messages.js'
import { type Id, idBytes, parseId } from '../format/id.js'
import type { Delivery } from '../gateway/deliver.js'
import type { Entry } from '../gateway/entry.js'
import type { Guard } from '../gateway/guard.js'
import type { Located, Locator } from '../gateway/locator.js'
import type { Described } from '../http/openapi.js'
import { answerText, closeOpened } from '../serving/exchange-answers.js'
import type { Naming } from '../serving/naming.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'

type HereContent = Extract<Located, { at: 'store' | 'unchecked' }>

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
    const { requestLog, catalog, locator, delivery, guard } = this.parts
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
    const found = id && this.#here(exchange, digest, locator.locate(exchange, id, 'take'))
    if (id === undefined || found === undefined)
      delivery.unknown(exchange, 'no content with this digest is here')
    else if (found.at === 'store' && found.sound) this.#serve(exchange, id, found)
    else delivery.run(exchange, this.#serveChecked(exchange, id, digest, found.entry))
  }

  /** A client that requests by digest relies on it, so the file is checked before it is served, whatever its size. */
  async #serveChecked(exchange: Exchange, id: Id, digest: Uint8Array, entry: Entry): Promise<void> {
    const { delivery } = this.parts
    closeOpened(exchange)
    const checked = await delivery.checked(exchange, id, entry)
    if (checked === undefined) return
    const found = this.#here(exchange, digest, checked)
    if (found?.at === 'store') this.#serve(exchange, id, found)
    else delivery.unknown(exchange, 'content with this digest is no longer here')
  }

  /** Undefined where the bytes are not here, or the id means other bytes by now. */
  #here(exchange: Exchange, digest: Uint8Array, found: Located): HereContent | undefined {
    if (found.at === 'nowhere' || found.at === 'catalog') return undefined
    const known = found.entry.attributes.digest
    if (known !== undefined && Buffer.compare(known, digest) === 0) return found
    closeOpened(exchange)
    return undefined
  }

  #serve(exchange: Exchange, id: Id, found: HereContent): void {
    exchange.naming = forever
    this.parts.delivery.serve(exchange, id, found)
  }
}
