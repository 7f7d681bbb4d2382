import type { TimedTurns } from '../../actor/timed-turns.js'
import type { Clients } from '../../admission/clients.js'
import { usdcOf } from '../../admission/usdc.js'
import { isRefusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { CreditsPort, UsdcPort } from '../../payment/credits-port.js'
import { type RawUpload, rawItemBytes } from '../raw/raw-upload.js'
import { jsonAnswer, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { UploadRoute } from '../requests/upload-route.js'
import { uploaderOf } from '../requests/uploader.js'
import type { UsdcUploads } from '../usdc/usdc-uploads.js'

export interface UsdcRoutesParts {
  readonly usdcUploads: UsdcUploads
  readonly raw: RawUpload
  readonly usdc?: UsdcPort
  readonly price?: CreditsPort['price']
  /** Turns of requests for prices. */
  readonly turns: Pick<TimedTurns, 'run'>
  readonly clients: Clients
}

const gibibyte = 2 ** 30
const tagsMax = 100
/** A tag of which nothing is known. */
const tagBytes = 64

/** Uploads that are paid for in USDC, and what they cost. Each under the names that older and newer clients have for it. */
export function usdcUploadRoutes({
  usdcUploads,
  raw,
  usdc,
  price,
  turns,
  clients,
}: UsdcRoutesParts): UploadRoute[] {
  const inTurn = async (request: Request, act: () => Promise<UploadAnswer>): Promise<UploadAnswer> => {
    const answer = await turns.run(clients.of(request).address, act)
    return isRefusal(answer) ? textAnswer(503, answer.message, '\r\nRetry-After: 1') : answer
  }
  const statuses = [200, 202, 400, 402, 403, 404, 408, 409, 411, 413] as const
  const takes = ['upload', 'data-item'].flatMap((family) =>
    ['', '/{network}'].flatMap((network): UploadRoute[] => [
      {
        method: 'POST',
        path: `/x402/${family}/signed${network}`,
        summary: 'Takes a signed data item that is paid for in USDC',
        statuses: [...statuses],
        answer: (request) => usdcUploads.receive(request, uploaderOf(request, clients, undefined)),
      },
      {
        method: 'POST',
        path: `/x402/${family}/unsigned${network}`,
        summary: 'Makes an item of bytes, signs it, and is paid for it in USDC',
        statuses: [...statuses],
        answer: (request) => raw.receive(request, uploaderOf(request, clients, undefined)),
      },
    ]),
  )
  return [
    ...takes,
    {
      path: '/price/x402/data-item/{token}/{byteCount}',
      summary: 'What a signed item costs in USDC',
      statuses: [200, 400, 404, 503],
      answer: (request, { token = '', byteCount = '' }) =>
        inTurn(request, () => priceOfItem(usdc, token, byteCount)),
    },
    {
      path: '/price/x402/data/{token}/{byteCount}',
      summary: 'What bytes cost in USDC that the service makes an item of',
      statuses: [200, 400, 404, 503],
      query: ['tags', 'contentType'],
      answer: (request, { token = '', byteCount = '' }) => {
        const query = new URLSearchParams(request.query)
        return inTurn(request, () => priceOfData({ usdc, price }, token, byteCount, query))
      },
    },
  ]
}

/** The network that a token names; undefined: it is not USDC. */
function networkOf(token: string): keyof typeof usdcOf | undefined {
  const [one = '', other = '', ...rest] = token.toLowerCase().split('-')
  const network = one === 'usdc' ? [other, ...rest].join('-') : token.toLowerCase().replace(/-usdc$/, '')
  return network === 'base' || network === 'base-sepolia' ? network : undefined
}

function bytesIn(text: string): number | undefined {
  const bytes = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0
  return bytes >= 1 && bytes <= 10 * gibibyte ? bytes : undefined
}

interface Priced {
  readonly usdcAmount: string
  readonly facts: object
}

async function priced(
  usdc: UsdcPort | undefined,
  token: string,
  byteCount: number,
  itemBytes: number,
): Promise<Priced | UploadAnswer> {
  const network = networkOf(token)
  if (network === undefined) return wrong(`The token '${token.slice(0, 64)}' is not supported by x402`)
  const quoted = await usdc?.units(itemBytes)
  if (quoted === undefined || (isRefusal(quoted) && quoted.refused === 'unknown'))
    return textAnswer(404, 'This service takes no payments by x402')
  if (isRefusal(quoted)) return textAnswer(503, quoted.message, '\r\nRetry-After: 2')
  if (quoted.network !== network) return wrong(`USDC is taken on the network ${quoted.network} alone`)
  const usdcAmount = quoted.units
  const { address: asset } = usdcOf[network]
  const payment = { scheme: 'exact', network, maxAmountRequired: usdcAmount, asset }
  const facts = { token, currency: 'usdc', network, byteCount, usdcAmount, x402Version: 1, payment }
  return { usdcAmount, facts }
}

async function priceOfItem(
  usdc: UsdcPort | undefined,
  token: string,
  byteCount: string,
): Promise<UploadAnswer> {
  const bytes = bytesIn(byteCount)
  if (bytes === undefined) return wrong('Invalid byte count: a whole number from 1 to 10 GiB')
  const price = await priced(usdc, token, bytes, bytes)
  return 'status' in price ? price : jsonAnswer(200, price.facts)
}

async function priceOfData(
  services: { readonly usdc: UsdcPort | undefined; readonly price: CreditsPort['price'] | undefined },
  token: string,
  byteCount: string,
  query: URLSearchParams,
): Promise<UploadAnswer> {
  const bytes = bytesIn(byteCount)
  if (bytes === undefined) return wrong('Invalid byte count: a whole number from 1 to 10 GiB')
  const text = query.get('tags') ?? '0'
  const userTagCount = /^\d{1,3}$/.test(text) ? Number(text) : tagsMax + 1
  if (userTagCount > tagsMax) return wrong(`Invalid tags: a whole number from 0 to ${tagsMax}`)
  const contentTypeBytes = (query.get('contentType') ?? 'application/octet-stream').length + tagBytes
  const estimated = rawItemBytes(bytes, userTagCount * tagBytes + Math.min(contentTypeBytes, 1024))
  const price = await priced(services.usdc, token, bytes, estimated)
  if ('status' in price) return price
  const systemTagCount = 7
  const cost = await services.price?.(estimated)
  const winstonCost = cost === undefined || isRefusal(cost) ? {} : { winstonCost: cost.winc }
  return jsonAnswer(200, {
    ...price.facts,
    rawDataSize: bytes,
    userTagCount,
    systemTagCount,
    totalTagCount: userTagCount + systemTagCount,
    estimatedDataItemSize: estimated,
    overhead: estimated - bytes,
    ...winstonCost,
  })
}

function wrong(error: string): UploadAnswer {
  return jsonAnswer(400, { error })
}
