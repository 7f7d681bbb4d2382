import type { Admission, Fare, Grant, Repeats } from '../admission/protocol.js'
import type { FramedHead, StandingBody, Terms } from '../http/exchange.js'
import type { MappedContent } from '../store/mapped.js'
import type { DeliveryParts } from './delivery-parts.js'
import type { Entry } from './entry.js'
import type { Flow } from './flow.js'
import { watchedMinBytes } from './guard.js'
import type { Planned } from './send.js'

/** What answers stand over. */
export type StandingParts = Pick<DeliveryParts, 'ledger'> & { readonly admission?: Admission | undefined }

/** What may be sent again. */
export interface Repeatable {
  readonly content: MappedContent
  readonly fare: Fare
  /** Whether it is still what would be answered. */
  holds(): boolean
}

/** Terms under which an answer stands: all that was decided for the first, asked again. */
class FlowTerms implements Terms {
  readonly asksWho: boolean

  constructor(
    private readonly parts: StandingParts,
    private readonly flow: Flow,
    private readonly status: number,
    private readonly repeatable: Repeatable,
    private readonly repeats: Repeats | undefined,
  ) {
    this.asksWho = repeats !== undefined
  }

  holds(): boolean {
    return this.repeatable.holds()
  }

  isHere(start: number, end: number): boolean {
    return this.repeatable.content.isHere(start, end)
  }

  admits(address: string, bytes: number, count: number): boolean {
    return this.repeats === undefined || this.repeats.admit(address, bytes, count)
  }

  sent(bytes: number, count: number): void {
    this.parts.ledger.again(this.flow, this.status, bytes, count)
  }

  close(): void {
    this.repeatable.content.close()
  }
}

/** Lets the answer to a flow with content from the store be given again while it holds. */
export function offerStanding(
  parts: StandingParts & Pick<DeliveryParts, 'locator' | 'guard'>,
  flow: Flow,
  { entry, content }: { readonly entry: Entry; readonly content: MappedContent },
  planned: Planned,
  grant: Grant,
  head: FramedHead,
): void {
  if (flow.reply.standing === undefined) return
  const { guard, locator } = parts
  const { request, naming } = flow
  const version = guard?.version
  // Whatever was blocked or released meanwhile, this content or another: the next request is decided anew.
  const holds = (): boolean => version === guard?.version && locator.stillHas(entry)
  const name = naming?.name === undefined ? {} : { name: naming.name }
  const fare = { request, bytes: planned.bytes, contentType: entry.contentType, ...name }
  offerAgain(parts, flow, { content, fare, holds }, planned, grant, head)
}

/**
 * Lets the answer to a flow be given again while it holds, where the server can and where not each request needs an answer of its
 * own. Its terms hold the content once more.
 */
export function offerAgain(
  parts: StandingParts,
  flow: Flow,
  repeatable: Repeatable,
  planned: Planned,
  grant: Grant,
  head: FramedHead,
): void {
  const { standing } = flow.reply
  if (standing === undefined || grant.lines !== '' || parts.ledger.logsAll) return
  const { variant, bytes, contentLength } = planned
  const isPart = variant === 'part'
  if (variant === 'parts' || bytes > watchedMinBytes) return
  // A range that did not count is no range to the server; a client that names its requests wants to hear that name.
  if ((flow.request.header('range') !== undefined) !== isPart) return
  if (flow.request.header('x-request-id') !== undefined) return
  const { content, fare } = repeatable
  const body = bytes === 0 ? undefined : bodyOf(content, planned)
  if (body === undefined && (bytes > 0 || isPart)) return
  const { admission } = parts
  const repeats = admission?.repeats(fare)
  if (admission !== undefined && repeats === undefined) return
  const again = { ...repeatable, content: content.again() }
  const terms = new FlowTerms(parts, flow, planned.status, again, repeats)
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
