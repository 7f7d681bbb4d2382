import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { bareType } from '../format/media-type.js'
import type { Resolved } from '../format/packed-manifest.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Delivery } from '../gateway/deliver.js'
import { typeOf } from '../gateway/head-writer.js'
import type { Located, Locator } from '../gateway/locator.js'
import { manifestType, type OpenManifests } from '../gateway/open-manifests.js'
import { enter } from '../gateway/steps.js'
import { answerGone, answerText, closeOpened } from '../serving/exchange-answers.js'
import type { ClientOf } from '../serving/in-slot.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'

/** A path below a manifest. */
export interface ManifestRequest {
  readonly id: Id
  /** Behind the id's slash, as the client wrote it. */
  readonly rest: string | undefined
  /** True where the answer is a redirect to the same path with a slash, which relative links need. */
  readonly redirect: boolean
}

type Held = Exclude<Located, { at: 'nowhere' }>

const broken = refuse('upstream', 'upstream', 'the manifest could not be read to its end')
const tooLarge = refuse('too-large', 'client', 'Manifest too large to resolve')

/** Answers paths below manifests: with the content that stands there. */
export class ManifestHandler {
  constructor(
    private readonly requestLog: RequestLog,
    private readonly locator: Locator,
    private readonly delivery: Delivery,
    private readonly manifests: OpenManifests,
    private readonly manifestMaxBytes: number,
    private readonly clientOf: ClientOf,
  ) {}

  isManifest(contentType: string): boolean {
    return bareType(contentType) === manifestType
  }

  /** The manifest is known here. Where this thread looked into it before, the answer is out on return. */
  handle(exchange: Exchange, wanted: ManifestRequest, found: Held): void {
    exchange.family = 'manifest'
    if (this.delivery.refusesBlocked(exchange, wanted.id, found)) return
    enter(exchange, 'manifest')
    const { attributes } = found.entry
    if (attributes.size > this.manifestMaxBytes) {
      closeOpened(exchange)
      this.delivery.refuse(exchange, tooLarge)
      return
    }
    const path = decode(wanted.rest ?? '')
    if (typeof path !== 'string') {
      closeOpened(exchange)
      this.#malformed(exchange, path)
      return
    }
    const { digest } = attributes
    if (found.at !== 'store' || !found.sound || digest === undefined) {
      exchange.cacheConditions = undefined
      this.delivery.run(exchange, this.#later(exchange, wanted, path, found))
      return
    }
    this.delivery.dependsOnManifest(exchange, found)
    closeOpened(exchange)
    const known = this.manifests.known(digest, path)
    if (known === 'unknown') this.delivery.run(exchange, this.#packed(exchange, wanted, path, digest))
    else this.#resolve(exchange, wanted, known)
  }

  /** Content of unknown type that a source opened: takes over the content and the exchange where it is a manifest. */
  take(exchange: Exchange, wanted: ManifestRequest, opened: OpenedContent): boolean {
    if (!this.isManifest(typeOf(opened.attributes))) return false
    enter(exchange, 'manifest')
    exchange.family = 'manifest'
    exchange.cacheConditions = undefined
    const path = decode(wanted.rest ?? '')
    if (typeof path === 'string')
      this.delivery.run(exchange, this.#fromOpened(exchange, wanted, path, opened))
    else {
      closeOpened(exchange)
      this.#malformed(exchange, path)
    }
    return true
  }

  async #later(exchange: Exchange, wanted: ManifestRequest, path: string, found: Held): Promise<void> {
    let now: Located = found
    if (now.at === 'unchecked') {
      const checked = await this.delivery.checked(exchange, wanted.id, now.entry)
      if (checked === undefined) return
      enter(exchange, 'manifest')
      now = checked
    }
    if (now.at === 'store') {
      closeOpened(exchange)
      const { digest } = now.entry.attributes
      // Bytes that could not be checked are not used: they are fetched from a source, as if they were not here.
      if (now.sound && digest !== undefined) return this.#packed(exchange, wanted, path, digest)
    }
    return this.#brought(exchange, wanted, path)
  }

  /** The text lies in the store. */
  async #packed(
    exchange: Exchange,
    wanted: ManifestRequest,
    path: string,
    digest: Uint8Array,
  ): Promise<void> {
    const found = await this.manifests.resolve(
      encodeBase64url(digest),
      { digest },
      path,
      this.clientOf(exchange.request),
    )
    if (exchange.reply.aborted) return answerGone(this.requestLog, exchange)
    // Evicted between our look and the pool's: it is fetched again.
    if (isRefusal(found) && found.refused === 'upstream') return this.#brought(exchange, wanted, path)
    this.#resolve(exchange, wanted, found)
  }

  async #brought(exchange: Exchange, wanted: ManifestRequest, path: string): Promise<void> {
    const opened = await this.delivery.bring(exchange, wanted.id, undefined)
    if (opened === undefined) return
    enter(exchange, 'manifest')
    await this.#fromOpened(exchange, wanted, path, opened)
  }

  async #fromOpened(
    exchange: Exchange,
    wanted: ManifestRequest,
    path: string,
    opened: OpenedContent,
  ): Promise<void> {
    const { attributes, content, span, manifestFrom } = opened
    const { size } = attributes
    let found: Awaited<ReturnType<OpenManifests['resolve']>> | undefined
    try {
      if (size > this.manifestMaxBytes) {
        this.delivery.refuse(exchange, tooLarge)
        return
      }
      if (span.start === 0 && span.end >= size) {
        // The last byte becomes ready only when all bytes are here and were checked.
        const isWhole = size === 0 || (await content.ready(size - 1, size))
        found = isWhole
          ? await this.manifests.resolve(wanted.id, manifestFrom, path, this.clientOf(exchange.request))
          : broken
      }
    } finally {
      // Before the content that the path means is opened for the same exchange.
      closeOpened(exchange)
    }
    if (exchange.reply.aborted) return answerGone(this.requestLog, exchange)
    if (found !== undefined) return this.#resolve(exchange, wanted, found)
    // A range was requested and opened before it was known that this is a manifest.
    return this.#brought(exchange, wanted, path)
  }

  #resolve(exchange: Exchange, wanted: ManifestRequest, target: Resolved | Refusal | 'absent'): void {
    if (isRefusal(target)) {
      this.delivery.refuse(exchange, target)
      return
    }
    if (target === 'absent') {
      this.delivery.unknown(exchange, 'the manifest has no such path')
      return
    }
    if (wanted.redirect) {
      this.#redirect(exchange, wanted)
      return
    }
    exchange.fallback = target.fallback
    this.delivery.serve(exchange, target.id, this.locator.locate(exchange, target.id))
  }

  #malformed(exchange: Exchange, { message }: Refusal): void {
    answerText(this.requestLog, exchange, { status: 400, text: message }, { fault: 'client' })
  }

  #redirect(exchange: Exchange, { id }: ManifestRequest): void {
    const { query } = exchange.request
    const place = `/${id}/${query === '' ? '' : `?${query.replace(/[^\x21-\x7e]/g, '')}`}`
    const lines = `\r\nLocation: ${place}`
    const text = `Moved permanently. Redirecting to ${place}`
    answerText(
      this.requestLog,
      exchange,
      { status: 301, text, lines },
      { reason: 'to the manifest with a slash' },
    )
  }
}

/** Percent-decoding, once (RFC 3986 section 2.1). */
function decode(text: string): string | Refusal {
  try {
    return decodeURIComponent(text)
  } catch {
    return refuse('malformed', 'client', 'Bad Request: Invalid URL encoding')
  }
}
