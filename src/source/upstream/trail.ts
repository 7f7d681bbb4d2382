import type { Hints, Provenance } from '../source-messages.js'

/** What decides whom a request may be passed on to. */
export interface TrailRules {
  /** A request that passed so many gateways is not passed on. */
  readonly hopsMax: number
  /** Our own host names, lower case. */
  readonly ownHosts: readonly string[]
}

/** True: no other gateway may get a request on behalf of this request. */
export function isConfined(provenance: Provenance, { hopsMax, ownHosts }: TrailRules): boolean {
  if (!provenance.forward || provenance.hops >= hopsMax) return true
  return provenance.via.some((host) => ownHosts.includes(host.toLowerCase()))
}

/** True: the request came through the gateway at `url`, or from it. */
export function passed(url: string, { origin, via }: Provenance): boolean {
  // Most requests come from nowhere: reading an address costs more than the rest of the request.
  if (origin === undefined && via.length === 0) return false
  const host = new URL(url).hostname.toLowerCase()
  return host === origin?.toLowerCase() || via.some((one) => one.toLowerCase() === host)
}

/**
 * What the trail of a request says that others act upon: requests from here skip those that were passed, and requests by
 * them do the same. '' where it says nothing: only then an answer is one that every client would have got.
 */
export function trailKey(provenance: Provenance, rules: TrailRules): string {
  if (isConfined(provenance, rules)) return 'confined'
  const { hops, origin = '', via } = provenance
  const isOwn = origin === '' || rules.ownHosts.includes(origin.toLowerCase())
  if (hops === 0 && via.length === 0 && isOwn) return ''
  return JSON.stringify([hops, isOwn ? '' : origin.toLowerCase(), via])
}

/** '' where there are no hints: they lead to one place first, and where that fails they may be all that was looked at. */
export function hintsKey({ rootId, path = [], itemOffset, itemSize }: Hints): string {
  if (rootId === undefined && path.length === 0) return ''
  return [rootId ?? '', itemOffset ?? '', itemSize ?? '', ...path].join(' ')
}
