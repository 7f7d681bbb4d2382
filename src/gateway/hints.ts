import { spellings } from '../attest/vocabulary.js'
import { type Id, parseId } from '../format/id.js'
import type { Request } from '../http/exchange.js'
import { firstHeader, readHops, wholeNumber } from '../serving/hops.js'
import type { Hints, Provenance, Trail } from '../source/source-messages.js'
import { hintsKey, trailKey } from '../source/upstream/trail.js'
import type { GatewayOptions } from './gateway-rules.js'

const names = {
  rootId: spellings('Root-Transaction-Id'),
  path: spellings('Root-Path'),
  // The specification's names, then those that gateways in use send.
  offset: [...spellings('Data-Item-Offset'), ...spellings('Root-Item-Offset')],
  size: [...spellings('Data-Item-Size'), ...spellings('Root-Item-Size')],
  origin: spellings('Origin'),
  originRelease: spellings('Origin-Node-Release'),
  via: spellings('Via'),
}

/** Bundles that a path may name; deeper nesting does not occur in practice. */
const pathMax = 16
/** Longer lists would make requests to other gateways exceed their header limits. */
const viaMax = 16
/** Host names, addresses and ports. Anything else would be sent on in a header, where a server may refuse the whole question. */
const hostShape = /^[a-z0-9._:[\]-]{1,255}$/
const releaseShape = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/

/** Matched without regard to letter case, returned as it was sent. */
function shaped(text: string | undefined, shape: RegExp): string | undefined {
  return text !== undefined && shape.test(text.toLowerCase()) ? text : undefined
}

/** Beginnings of the names of all lines that are read here, in both vocabularies. */
const beginnings = spellings('')

/** No line of a gateway's vocabulary is there: nearly all requests are so, and one look costs less than twenty. */
function isPlain(request: Request): boolean {
  return beginnings.every((start) => request.headersUnder(start).length === 0)
}

const noHints: Hints = {}
const noHosts: readonly string[] = []

/**
 * The place of the item by the client. Malformed hints are dropped, each for itself; a path names its root as well; offset
 * and size count only together and only with a root. A wrong hint is never an error: what is found is proven against the id.
 */
export function readHints(request: Request): Hints {
  if (isPlain(request)) return noHints
  const path = readPath(firstHeader(request, names.path))
  const rootId = parseId(firstHeader(request, names.rootId) ?? '') ?? path?.[0]
  const itemOffset = wholeNumber(firstHeader(request, names.offset))
  const itemSize = wholeNumber(firstHeader(request, names.size))
  const window = itemOffset !== undefined && itemSize !== undefined ? { itemOffset, itemSize } : {}
  return { ...(rootId === undefined ? {} : { rootId, ...window }), ...(path === undefined ? {} : { path }) }
}

function readPath(text: string | undefined): Id[] | undefined {
  if (text === undefined || text === '') return undefined
  const words = text.split(',', pathMax + 1)
  if (words.length > pathMax) return undefined
  const ids = words.map((word) => parseId(word.trim()))
  return ids.every((id) => id !== undefined) ? ids : undefined
}

/** Settings that detect request loops between gateways, and requests that must not be forwarded. */
export type Self = Pick<GatewayOptions, 'ownHosts' | 'release' | 'hopsMax' | 'localOnly'>

/**
 * Gateways that the request passed, and whether it may go further: not after too many, and not where it was here before.
 * Malformed host names are left out of the list, but counted as hops.
 */
export function readTrail(request: Request, self: Pick<Self, 'hopsMax' | 'ownHosts'>): Trail {
  if (isPlain(request)) return { hops: 0, via: noHosts, forward: self.hopsMax > 0 }
  const hops = readHops(request)
  const via = (firstHeader(request, names.via) ?? '')
    .split(',', viaMax)
    .map((host) => host.trim().toLowerCase())
    .filter((host) => hostShape.test(host))
  const wasHere = via.some((host) => self.ownHosts.includes(host))
  return { hops, via, forward: hops < self.hopsMax && via.length < viaMax && !wasHere }
}

/**
 * The origin of a request, and whether it may be forwarded to other gateways. It must not be after too many hops, after an
 * earlier visit here, or where the client forbids it. A request without an origin begins at this gateway.
 */
export function readProvenance(request: Request, self: Self): Provenance {
  const [own] = self.ownHosts
  const { release } = self
  if (isPlain(request)) {
    const forward = self.hopsMax > 0 && !self.localOnly.has(request, undefined)
    const plain = { hops: 0, via: noHosts, forward }
    return own === undefined ? plain : { ...plain, origin: own, originRelease: release }
  }
  const trail = readTrail(request, self)
  const origin = shaped(firstHeader(request, names.origin), hostShape)
  const originRelease = shaped(firstHeader(request, names.originRelease), releaseShape)
  const known = { ...trail, forward: trail.forward && !self.localOnly.has(request, origin) }
  if (origin === undefined && originRelease === undefined) {
    return own === undefined ? known : { ...known, origin: own, originRelease: release }
  }
  return {
    ...known,
    ...(origin === undefined ? {} : { origin }),
    ...(originRelease === undefined ? {} : { originRelease }),
  }
}

/**
 * Cache-Control of a 404, or of a 451 by place: `caching`, but `no-store` where sources may have been skipped because of the
 * client's hints or hops. A cache in front stores answers by address, and would give this answer to all other clients.
 */
export function absentCaching(request: Request, self: Self, caching: string): string {
  const isPlain = trailKey(readProvenance(request, self), self) === '' && hintsKey(readHints(request)) === ''
  return isPlain ? caching : 'no-store'
}
