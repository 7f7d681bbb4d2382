import type { TimedTurns } from '../../actor/timed-turns.js'
import type { Clients } from '../../admission/clients.js'
import type { Refusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { HtmlPage } from '../../http/page.js'
import { htmlType, publicShortly, takesPages } from '../../http/small-answer.js'
import { checksumAddress } from '../../proof/ethereum.js'
import type { SingleUpload } from '../intake/single-upload.js'
import type { FreePools } from '../records/free-pools.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import { fixedAnswers, jsonAnswer, refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import { idIn, type UploadRoute } from '../requests/upload-route.js'
import { addressShape, uploaderOf } from '../requests/uploader.js'
import { MissingContents } from './check-missing.js'
import { creditsRoutes, type QuotedCredits } from './credits-routes.js'
import { healthRoutes, type UploadHealth } from './upload-health.js'

export interface UploadRoutesParts {
  readonly uploads: Uploads
  /** Why an item that is not found may have been accepted; undefined: it was not. */
  readonly lateRefusal: () => Refusal | undefined
  readonly single: SingleUpload
  readonly clients: Clients
  /** The content of `/info`. */
  readonly info: () => object
  /** What browsers see at `/`. */
  readonly page: HtmlPage
  /** Absent: nobody is paid here. */
  readonly credits?: QuotedCredits
  /** Turns of requests about credits. */
  readonly turns: Pick<TimedTurns, 'run'>
  readonly health: UploadHealth
  /** What wallets may upload for free. */
  readonly pools: Pick<FreePools, 'left' | 'leftOfRange' | 'refresh' | 'rules'>
}

/** The routes of single uploads and of what became of them. */
export function uploadRoutes(parts: UploadRoutesParts): UploadRoute[] {
  const { uploads, single, clients, info, page, credits, turns, health, pools } = parts
  const post = (request: Request, token: string | undefined): Promise<UploadAnswer> =>
    single.receive(request, uploaderOf(request, clients, token))
  const missing = new MissingContents(uploads)
  const about = (): UploadAnswer => jsonAnswer(200, info(), publicShortly)
  const front = (request: Request): UploadAnswer => {
    const varying = `${publicShortly}\r\nVary: Accept`
    if (!takesPages(request)) return jsonAnswer(200, info(), varying)
    return { status: 200, text: page.html, type: htmlType, lines: page.lines + varying }
  }
  const takes = {
    method: 'POST',
    summary: 'Takes a signed data item, and answers with a receipt',
    statuses: [200, 202, 400, 402, 403, 408, 409, 413],
  } as const
  const infoRoute = { summary: 'The service, and what it takes', statuses: [200], answer: about }
  return [
    { ...infoRoute, path: '/', answer: front },
    { ...infoRoute, path: '/info' },
    ...healthRoutes(health),
    ...creditsRoutes({ credits, turns, clients }),
    {
      path: '/account/free',
      summary: 'How many bytes a wallet, and who asks, may still upload for free; null: any number',
      statuses: [200],
      query: ['address'],
      answer: async (request) => jsonAnswer(200, await freeFor(pools, request, clients, turns)),
    },
    {
      method: 'POST',
      path: '/check-missing',
      summary: 'Which contents an owner has not uploaded here, by their SHA-256',
      statuses: [200, 400, 413, 503],
      answer: (request) => missing.check(request, clients.of(request).address),
    },
    { ...takes, path: '/tx', answer: (request) => post(request, undefined) },
    { ...takes, path: '/tx/{token}', answer: (request, { token }) => post(request, token) },
    {
      path: '/tx/{id}/status',
      summary: 'Where an item is on its way to be permanent',
      statuses: [200, 404, 503],
      answer: (_, parameters) => factsAnswer(parts, parameters, statusOf),
    },
    {
      path: '/tx/{id}/offsets',
      summary: 'Where an item lies in the transaction that carries it',
      statuses: [200, 404, 503],
      answer: (_, parameters) => factsAnswer(parts, parameters, offsetsOf),
    },
  ]
}

/**
 * What is left for a wallet from the client's network, and for the client's address range: an item is free where both suffice.
 * Null: any number. The range is charged `itemOverheadBytes` more for each item.
 */
async function freeFor(
  pools: UploadRoutesParts['pools'],
  request: Request,
  clients: Clients,
  turns: Pick<TimedTurns, 'run'>,
): Promise<
  Readonly<Record<'bytesRemaining' | 'rangeBytesRemaining', number | null>> & {
    readonly itemOverheadBytes: number
  }
> {
  const given = new URLSearchParams(request.query).get('address') ?? ''
  // What is no address is nobody's, and is sent to no database.
  const address = addressShape.test(given) ? given : ''
  const isHex = /^0x[0-9a-f]{40}$/i.test(address)
  const wallet = isHex ? checksumAddress(Buffer.from(address.slice(2), 'hex')) : address
  const { address: from } = uploaderOf(request, clients, undefined)
  // Who asks too often gets what this machine knows.
  await turns.run(clients.of(request).address, () => pools.refresh(wallet, from))
  const bytesRemaining = pools.left(wallet, from)
  const rangeBytesRemaining = bytesRemaining === null ? null : pools.leftOfRange(from)
  return { bytesRemaining, rangeBytesRemaining, itemOverheadBytes: pools.rules.itemOverheadBytes ?? 0 }
}

function factsAnswer(
  { uploads, lateRefusal }: Pick<UploadRoutesParts, 'uploads' | 'lateRefusal'>,
  parameters: Readonly<Record<string, string>>,
  factsOf: (item: AcceptedItem) => object | undefined,
): UploadAnswer {
  const id = idIn(parameters)
  const item = id === undefined ? undefined : uploads.find(id)
  const value = item === undefined ? undefined : factsOf(item)
  if (item === undefined || value === undefined) {
    const unsure = lateRefusal()
    return unsure === undefined ? fixedAnswers.unknownItem : refusalAnswer(unsure)
  }
  const seconds = item.permanent === undefined ? 15 : 86_400
  return jsonAnswer(200, value, `\r\nCache-Control: public, max-age=${seconds}`)
}

/** Where an item is on its way, in the words of clients. */
function statusOf(item: AcceptedItem): object {
  const { bundle, permanent, reason, winc } = item
  const [status, info] =
    reason !== undefined
      ? ['FAILED', 'failed']
      : permanent !== undefined
        ? ['FINALIZED', 'permanent']
        : ['CONFIRMED', bundle === undefined ? 'new' : 'pending']
  return {
    status,
    info,
    winc,
    ...(bundle === undefined ? {} : { bundleId: bundle }),
    ...(reason === undefined ? {} : { reason }),
    ...(bundle === undefined ? {} : placeOf(item)),
  }
}

function offsetsOf(item: AcceptedItem): object | undefined {
  return item.bundle === undefined ? undefined : { rootBundleId: item.bundle, ...placeOf(item) }
}

function placeOf({ place, headerSize, offset, contentType }: AcceptedItem): object {
  return {
    ...(offset === undefined ? {} : { startOffsetInRootBundle: offset }),
    rawContentLength: place.sizeBytes,
    ...(contentType === undefined ? {} : { payloadContentType: contentType }),
    payloadDataStart: headerSize,
    payloadContentLength: place.sizeBytes - headerSize,
  }
}
