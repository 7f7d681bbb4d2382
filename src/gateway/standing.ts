import type { Grant, Repeats } from '../admission/protocol.js'
import type { FramedHead, StandingBody, Terms } from '../http/exchange.js'
import type { MappedContent } from '../store/mapped.js'
import type { DeliveryParts } from './delivery-parts.js'
import type { Entry } from './entry.js'
import type { Flow } from './flow.js'
import { watchedMinBytes } from './guard.js'
import type { Planned } from './send.js'

type Parts = Pick<DeliveryParts, 'ledger' | 'locator' | 'guard' | 'admission'>

/** Terms under which an answer from the store stands: all that was decided for the first, asked again. */
class StoredTerms implements Terms {
  readonly asksWho: boolean
  readonly #version: number | undefined

  constructor(
    private readonly parts: Parts,
    private readonly flow: Flow,
    private readonly status: number,
    private readonly entry: Entry,
    private readonly content: MappedContent,
    private readonly repeats: Repeats | undefined,
  ) {
    this.asksWho = repeats !== undefined
    this.#version = parts.guard?.version
  }

  holds(): boolean {
    const { guard, locator } = this.parts
    // Whatever was blocked or released meanwhile, this content or another: the next request is decided anew.
    return this.#version === guard?.version && locator.stillHas(this.entry)
  }

  isHere(start: number, end: number): boolean {
    return this.content.isHere(start, end)
  }

  admits(address: string, bytes: number, count: number): boolean {
    return this.repeats === undefined || this.repeats.admit(address, bytes, count)
  }

  sent(bytes: number, count: number): void {
    this.parts.ledger.again(this.flow, this.status, bytes, count)
  }

  close(): void {
    this.content.close()
  }
}

/**
 * Lets the answer to a flow be given again while it holds, where the server can and where not each request needs an answer of its
 * own. Its terms hold the content once more.
 */
export function offerStanding(
  parts: Parts,
  flow: Flow,
  { entry, content }: { readonly entry: Entry; readonly content: MappedContent },
  planned: Planned,
  grant: Grant,
  head: FramedHead,
): void {
  const { request, naming } = flow
  const { standing } = flow.reply
  if (standing === undefined || grant.lines !== '' || parts.ledger.logsAll) return
  const { variant, bytes, contentLength } = planned
  const isPart = variant === 'part'
  if (variant === 'parts' || bytes > watchedMinBytes) return
  // A range that did not count is no range to the server; a client that names its requests wants to hear that name.
  if ((request.header('range') !== undefined) !== isPart) return
  if (request.header('x-request-id') !== undefined) return
  const body = bytes === 0 ? undefined : bodyOf(content, planned)
  if (body === undefined && (bytes > 0 || isPart)) return
  const { admission } = parts
  const { contentType } = entry
  const name = naming?.name === undefined ? {} : { name: naming.name }
  const repeats = admission?.repeats({ request, bytes, contentType, ...name })
  if (admission !== undefined && repeats === undefined) return
  const terms = new StoredTerms(parts, flow, planned.status, entry, content.again(), repeats)
  // The lines of the plan come first among the head's own: Content-Range, which every request has for itself.
  const lines = head.lines.slice(planned.lines.length)
  standing.offer({ head: { ...head, lines }, contentLength, body, terms })
}

function bodyOf(content: MappedContent, { variant, pieces }: Planned): StandingBody | undefined {
  const piece = pieces[0]
  if (pieces.length !== 1 || piece === undefined || 'bytes' in piece) return undefined
  const window = content.window(piece.start, piece.end)
  if (window === undefined) return undefined
  const { sizeBytes } = content
  if (variant === 'part') return { ...window, isRange: true, sizeBytes }
  return { bytes: window.bytes.subarray(0, piece.end), isRange: false, start: 0, sizeBytes }
}
