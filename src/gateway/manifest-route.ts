import type { Id } from '../format/id.js'
import { type Manifest, resolvePath } from '../format/manifest.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Opened } from '../source/opener.js'
import type { Content } from '../store/content.js'
import { bareType } from './cache-control.js'
import type { Delivery } from './deliver.js'
import { answerGone, answerText, type Flow, type Ledger } from './flow.js'
import { typeOf } from './head.js'
import type { Located, Locator } from './locate.js'
import { type Manifests, manifestType } from './manifests.js'

/** A path below a manifest. */
export interface ManifestAsk {
  readonly id: Id
  /** Behind the id's slash, as the client wrote it. */
  readonly rest: string | undefined
  /** True where the answer is only the way to the same place with a slash: relative links need it. */
  readonly redirect: boolean
}

type Held = Exclude<Located, { at: 'nowhere' }>

const tooLarge = refuse('too-large', 'client', 'Manifest too large to resolve')

/** Answers paths below manifests: with the content that stands there. */
export class ManifestRoute {
  constructor(
    private readonly ledger: Ledger,
    private readonly locator: Locator,
    private readonly delivery: Delivery,
    private readonly manifests: Manifests,
    private readonly manifestMaxBytes: number,
  ) {}

  isManifest(contentType: string): boolean {
    return bareType(contentType) === manifestType
  }

  /** The manifest is known here. Where it was parsed before and its content is in memory, the answer is out on return. */
  handle(flow: Flow, ask: ManifestAsk, found: Held): void {
    flow.family = 'manifest'
    if (this.delivery.turnsAway(flow, ask.id, found)) return
    const { entityTag, attributes } = found.entry
    if (attributes.size > this.manifestMaxBytes) {
      if (found.at === 'store') found.content.close()
      this.delivery.refuse(flow, tooLarge)
      return
    }
    if (found.at === 'store' && found.sound) {
      const { content } = found
      const known = entityTag === undefined ? undefined : this.manifests.get(entityTag)
      const view =
        known === undefined && content.sizeBytes > 0 ? content.read(0, content.sizeBytes) : undefined
      const whole = view?.length === content.sizeBytes ? view : undefined
      const manifest = known ?? (whole === undefined ? undefined : this.manifests.parse(whole, entityTag))
      if (manifest !== undefined) {
        content.close()
        this.#resolve(flow, ask, manifest)
        return
      }
      this.delivery.run(flow, this.#fromContent(flow, ask, content, entityTag))
      return
    }
    this.delivery.run(flow, this.#later(flow, ask, found))
  }

  /** Content that a source opened for a flow of unknown type: takes it, and the flow, where it is a manifest. */
  take(flow: Flow, ask: ManifestAsk, opened: Opened): boolean {
    if (!this.isManifest(typeOf(opened.attributes))) return false
    flow.family = 'manifest'
    this.delivery.run(flow, this.#fromOpened(flow, ask, opened))
    return true
  }

  async #later(flow: Flow, ask: ManifestAsk, found: Held): Promise<void> {
    let now: Located = found
    if (now.at === 'unchecked') {
      await this.locator.check(now.entry)
      if (flow.reply.aborted) return answerGone(this.ledger, flow)
      now = this.locator.locate(ask.id, false)
    }
    // Bytes that could not be checked decide nothing: the source is asked, as for those that are not here.
    if (now.at === 'store') {
      if (now.sound) return this.#fromContent(flow, ask, now.content, now.entry.entityTag)
      now.content.close()
    }
    const opened = await this.delivery.bring(flow, ask.id, undefined)
    if (opened !== undefined) await this.#fromOpened(flow, ask, opened)
  }

  async #fromOpened(flow: Flow, ask: ManifestAsk, opened: Opened): Promise<void> {
    const { attributes, content, window } = opened
    if (attributes.size > this.manifestMaxBytes) {
      content.close()
      this.delivery.refuse(flow, tooLarge)
      return
    }
    if (window.start > 0 || window.end < attributes.size) {
      // A range was asked for, and opened as one, before anybody knew that this is a manifest.
      content.close()
      const all = await this.delivery.bring(flow, ask.id, undefined)
      return all === undefined ? undefined : this.#fromOpened(flow, ask, all)
    }
    return this.#fromContent(flow, ask, content, undefined)
  }

  async #fromContent(
    flow: Flow,
    ask: ManifestAsk,
    content: Content,
    entityTag: string | undefined,
  ): Promise<void> {
    const manifest = await this.manifests.read(ask.id, content, entityTag)
    if (flow.reply.aborted) return answerGone(this.ledger, flow)
    this.#resolve(flow, ask, manifest)
  }

  #resolve(flow: Flow, ask: ManifestAsk, manifest: Manifest | Refusal): void {
    if (isRefusal(manifest)) {
      this.delivery.refuse(flow, manifest)
      return
    }
    const path = decode(ask.rest ?? '')
    if (typeof path !== 'string') {
      answerText(this.ledger, flow, { status: 400, text: path.message }, { fault: 'client' })
      return
    }
    const target = resolvePath(manifest, path)
    if (target === undefined) {
      this.delivery.unknown(flow, 'the manifest has no such path')
      return
    }
    if (ask.redirect) {
      this.#redirect(flow, ask)
      return
    }
    flow.fallback = target.fallback
    this.delivery.serve(flow, target.id, this.locator.locate(target.id))
  }

  #redirect(flow: Flow, { id }: ManifestAsk): void {
    const { query } = flow.request
    const place = `/${id}/${query === '' ? '' : `?${query.replace(/[^\x21-\x7e]/g, '')}`}`
    const lines = `\r\nLocation: ${place}`
    const text = `Moved permanently. Redirecting to ${place}`
    answerText(this.ledger, flow, { status: 301, text, lines }, { reason: 'to the manifest with a slash' })
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
