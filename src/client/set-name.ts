import { isId } from '../format/id.js'
import { ClientError } from './errors.js'
import { errorOf, type FetchLike, RemoteService, type ServiceAnswer } from './service.js'
import { signedHeaders } from './signed-headers.js'
import type { ClientSigner } from './signer.js'
import { nowMs, waited } from './timing.js'

export interface NameToSet {
  /** What stands in front of a host: `docs`, or `under_docs` for an undername. */
  readonly name: string
  readonly id: string
  /** How long others may remember what the name means. */
  readonly ttlSeconds: number
}

/** What gateways call their own paths. */
const prefixes = ['/gateway', '/ar-io'] as const

/** How long a gateway may take until all of it answers with the new meaning. */
const knownWithinMs = 10_000
const askAgainMs = 250

/**
 * Sets the target of a name at one gateway, by an order that is signed for that gateway only. Resolves with the address of the
 * name, after the gateway resolves the name to the id. Rejects with `forbidden` where the operator has not granted the name to
 * this wallet. `withinMs`: time limit until the gateway resolves it.
 */
export async function setName(
  gatewayUrl: string,
  signer: ClientSigner,
  wanted: NameToSet,
  fetcher: FetchLike = (url, init) => fetch(url, init),
  withinMs = knownWithinMs,
): Promise<string> {
  const url = gatewayUrl.replace(/\/+$/, '')
  const service = new RemoteService(url, fetcher)
  for (const prefix of prefixes) {
    const answer = await ordered(service, signer, wanted, prefix)
    if (answer === undefined) continue
    // An order whose answer was lost is sent again, and is refused where the first one was carried out.
    const isDone = answer.status === 409 && (await meaningOf(service, wanted.name, prefix)) === wanted.id
    if (answer.status !== 200 && !isDone) throw refusalOf(url, answer)
    await untilKnown(service, wanted, prefix, withinMs)
    return addressOf(url, wanted.name)
  }
  const advice = 'set the name where it was registered, or use a gateway that lets wallets set names'
  throw new ClientError('rejected', `${url} has no way to set names`, advice)
}

/** Sends an order; undefined: the gateway has no such path. */
async function ordered(
  service: RemoteService,
  signer: ClientSigner,
  { name, id, ttlSeconds }: NameToSet,
  prefix: string,
): Promise<ServiceAnswer | undefined> {
  const [gateway, timeMs] = [new URL(service.url).host, nowMs()]
  const lines = ['sluice: set a name', `gateway: ${gateway}`, `name: ${name}`, `id: ${id}`]
  const bound = [...lines, `ttl: ${ttlSeconds}`, `time: ${timeMs}`, 'nonce: '].join('\n')
  const answer = await service.ask({
    method: 'PUT',
    path: `${prefix}/names/${encodeURIComponent(name)}`,
    headers: { 'content-type': 'application/json', ...(await signedHeaders(signer, bound)) },
    body: JSON.stringify({ id, ttlSeconds, gateway, timeMs }),
    accepted: [200, 400, 401, 403, 404, 405, 409, 451, 501],
  })
  return answer.status === 404 || answer.status === 405 ? undefined : answer
}

function refusalOf(url: string, answer: ServiceAnswer): ClientError {
  const { status, text } = answer
  if (status !== 403 && status !== 451 && status !== 501) return errorOf(url, answer)
  const advice = 'ask the operator of the gateway, or use the link with the id'
  return new ClientError('forbidden', `${url} answered ${status}: ${text.slice(0, 300).trim()}`, advice, {
    status,
  })
}

/** The id of a name, as a gateway states it; undefined: it does not know the name. */
async function meaningOf(service: RemoteService, name: string, prefix: string): Promise<string | undefined> {
  const path = `${prefix}/resolver/${encodeURIComponent(name)}`
  const { json } = await service.ask({ path, accepted: [200, 404] })
  const { txId } = (json ?? {}) as { readonly txId?: unknown }
  return typeof txId === 'string' && isId(txId) ? txId : undefined
}

/** Ends when the gateway resolves the name to the id. */
async function untilKnown(
  service: RemoteService,
  { name, id }: NameToSet,
  prefix: string,
  withinMs: number,
): Promise<void> {
  for (const untilMs = nowMs() + withinMs; ; await waited(askAgainMs)) {
    const meaning = await meaningOf(service, name, prefix)
    if (meaning === id) return
    if (nowMs() < untilMs) continue
    const means = meaning === undefined ? 'is still not known' : `still means ${meaning}`
    const found = `${service.url} took the order, but there ${name} ${means}`
    throw new ClientError('rejected', found, 'another resolver may come first there: ask its operator')
  }
}

/** Where the gateway serves a name. Browsers resolve every host below localhost to this machine. */
function addressOf(gatewayUrl: string, name: string): string {
  const url = new URL(gatewayUrl)
  if (/^(127\.0\.0\.1|\[::1\])$/.test(url.hostname)) url.hostname = 'localhost'
  url.hostname = `${name}.${url.hostname}`
  return url.href
}
