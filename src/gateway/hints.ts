import { spellings } from '../attest/vocabulary.js'
import { type Id, parseId } from '../format/id.js'
import type { Request } from '../http/exchange.js'
import type { Trail } from '../names/protocol.js'
import type { Hints, Provenance } from '../source/protocol.js'
import type { GatewayOptions } from './parts.js'

const names = {
  rootId: spellings('Root-Transaction-Id'),
  path: spellings('Root-Path'),
  // The specification's names, then those that gateways in use send.
  offset: [...spellings('Data-Item-Offset'), ...spellings('Root-Item-Offset')],
  size: [...spellings('Data-Item-Size'), ...spellings('Root-Item-Size')],
  hops: spellings('Hops'),
  origin: spellings('Origin'),
  originRelease: spellings('Origin-Node-Release'),
  via: spellings('Via'),
}

/** Deeper nesting than this is no honest path. */
const pathMax = 16
const viaMax = 64
const textMax = 256

function first(request: Request, spelled: readonly string[]): string | undefined {
  for (const name of spelled) {
    const value = request.header(name)
    if (value !== undefined) return value.trim()
  }
  return undefined
}

function whole(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/**
 * Where the client says the item lies. Malformed hints are dropped, each for itself; offset and size count only together
 * and only with a root. A wrong hint is never an error: what is found is proven against the id.
 */
export function readHints(request: Request): Hints {
  const rootId = parseId(first(request, names.rootId) ?? '')
  const path = readPath(first(request, names.path))
  const itemOffset = whole(first(request, names.offset))
  const itemSize = whole(first(request, names.size))
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

/** Gateways that the request passed, by its own word; 0 where it says nothing readable. */
export function readHops(request: Request): number {
  return whole(first(request, names.hops)) ?? 0
}

/** What this gateway knows of itself for the defence against circles, and for whom it asks no other one. */
export type Self = Pick<
  GatewayOptions,
  | 'ownHosts'
  | 'release'
  | 'hopsMax'
  | 'localOnlyHeaders'
  | 'localOnlyEmptyUserAgent'
  | 'localOnlyUserAgents'
  | 'localOnlyOrigins'
  | 'localOnlyClient'
>

/** Gateways that the request passed, and whether it may go further: not after too many, not where it was here before. */
export function readTrail(request: Request, self: Pick<Self, 'hopsMax' | 'ownHosts'>): Trail {
  const hops = readHops(request)
  const via = (first(request, names.via) ?? '')
    .split(',', viaMax)
    .map((host) => host.trim().toLowerCase().slice(0, textMax))
    .filter((host) => host !== '')
  const wasHere = via.some((host) => self.ownHosts.includes(host))
  return { hops, via, forward: hops < self.hopsMax && via.length < viaMax && !wasHere }
}

/**
 * Where the request comes from, and whether it may be carried on to other gateways: not after too many hops, not where it
 * was here before, not where the client forbids it. Without an origin of its own the request's origin is this gateway.
 */
export function readProvenance(request: Request, self: Self): Provenance {
  const trail = readTrail(request, self)
  const origin = first(request, names.origin)?.slice(0, textMax)
  const originRelease = first(request, names.originRelease)?.slice(0, textMax)
  const known = { ...trail, forward: trail.forward && !isLocalOnly(request, origin, self) }
  if (origin === undefined && originRelease === undefined) {
    const [own] = self.ownHosts
    return own === undefined ? known : { ...known, origin: own, originRelease: self.release }
  }
  return {
    ...known,
    ...(origin === undefined ? {} : { origin }),
    ...(originRelease === undefined ? {} : { originRelease }),
  }
}

function isLocalOnly(request: Request, origin: string | undefined, self: Self): boolean {
  const agent = request.header('user-agent')?.trim().toLowerCase()
  return (
    self.localOnlyHeaders.some((name) => request.header(name) !== undefined) ||
    (agent === '' && self.localOnlyEmptyUserAgent) ||
    (agent !== undefined && self.localOnlyUserAgents.some((part) => agent.includes(part))) ||
    (origin !== undefined && self.localOnlyOrigins.includes(origin.toLowerCase())) ||
    (self.localOnlyClient?.(request) ?? false)
  )
}
