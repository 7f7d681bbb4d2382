import type { Admission, Charge, Fare, Grant, Repeats } from '../admission/protocol.js'
import type { FramedHead, Given, StandingBody, Terms } from '../http/exchange.js'
import type { MappedContent } from '../store/mapped.js'
import type { DeliveryParts } from './delivery-parts.js'
import type { Entry } from './entry.js'
import type { Flow } from './flow.js'
import type { Planned } from './send.js'

/** What answers stand over. */
export type StandingParts = Pick<DeliveryParts, 'ledger'> & { readonly admission?: Admission | undefined }

/** What may be sent again. */
export interface Repeatable {
  readonly content: MappedContent
  readonly fare: Fare
  /** Whether it is still what would be answered. */
  holds(): boolean
  /** False: what is on its way breaks off. */
  mayGoOn(): boolean
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

  give(address: string, bytes: number, count: number): Given | undefined {
    const charge = this.repeats?.admit(address, bytes, count)
    if (charge === undefined && this.repeats !== undefined) return undefined
    const { ledger } = this.parts
    ledger.again(this.flow, this.status, bytes, count)
    return charge === undefined ? ledger : new Charged(ledger, charge, bytes)
  }

  mayGoOn(): boolean {
    return this.repeatable.mayGoOn()
  }

  close(): void {
    this.repeatable.content.close()
  }
}

/** Answers of `bytes` each that were paid for: what a client did not get it gets back. */
class Charged implements Given {
  constructor(
    private readonly ledger: Given,
    private readonly charge: Charge,
    private readonly bytes: number,
  ) {}

  short(bytes: number): void {
    this.ledger.short(bytes)
    this.charge.short(this.bytes, bytes)
  }
}

const always = (): boolean => true

/** Larger bodies are moved piece by piece, as this side says: their own cost is what counts there. */
const standingMaxBytes = 2 ** 20

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
  const mayGoOn = guard?.watch(entry.attributes) ?? always
  const name = naming?.name === undefined ? {} : { name: naming.name }
  const fare = { request, bytes: planned.bytes, contentType: entry.contentType, ...name }
  offerAgain(parts, flow, { content, fare, holds, mayGoOn }, planned, grant, head)
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
  if (variant === 'parts' || bytes > standingMaxBytes) return
  // A range that did not count is no range to the server; a client that names its requests wants to hear that name.
  if ((flow.request.header('range') !== undefined) !== isPart) return
  if (flow.request.header('x-request-id') !== undefined) return
  const { content, fare } = repeatable
  const body = bytes === 0 ? undefined : bodyOf(content, planned)
  if (body === undefined && (bytes > 0 || isPart)) return
  const { admission } = parts
  const repeats = admission?.repeats(fare)
  if (admission !== undefined && repeats === undefined) return
  const again: Repeatable = { ...repeatable, content: content.again() }
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
  return { ...window, bytes: window.bytes.subarray(0, piece.end), isRange: false, sizeBytes }
}
