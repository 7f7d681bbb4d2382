import { parseId } from '../format/id.js'
import { ttlMaxSeconds } from './name-record.js'
import type { NameRecord } from './names-port.js'

/** The order of a wallet: a new target for a name, at one gateway. */
export interface NamingOrder {
  readonly record: Pick<NameRecord, 'id' | 'ttlSeconds'>
  /** Host of the gateway as the client writes it, with its port where there is one: the order is void elsewhere. */
  readonly gateway: string
  /** When it was signed, by the client's clock. */
  readonly timeMs: number
}

/** The text that is signed, in front of the nonce. One line for each member, so that no two orders have the same text. */
export function nameOrderText(name: string, { record, gateway, timeMs }: NamingOrder): string {
  const lines = [
    'sluice: set a name',
    `gateway: ${gateway}`,
    `name: ${name}`,
    `id: ${record.id}`,
    `ttl: ${record.ttlSeconds}`,
    `time: ${timeMs}`,
    'nonce: ',
  ]
  return lines.join('\n')
}

const hostShape = /^[\x21-\x7e]{1,260}$/

/** An order out of JSON, or what is wrong with it. */
export function readNameOrder(given: unknown): NamingOrder | string {
  const { id, ttlSeconds, gateway, timeMs } = (
    typeof given === 'object' && given !== null ? given : {}
  ) as Record<string, unknown>
  const target = typeof id === 'string' ? parseId(id) : undefined
  if (target === undefined) return 'id must be an id: 43 characters of base64url'
  if (!isWhole(ttlSeconds, ttlMaxSeconds)) return `ttlSeconds must be a whole number up to ${ttlMaxSeconds}`
  if (!isWhole(timeMs, Number.MAX_SAFE_INTEGER)) return 'timeMs must be a time in milliseconds'
  if (typeof gateway !== 'string' || !hostShape.test(gateway)) return 'gateway must be a host'
  return { record: { id: target, ttlSeconds }, gateway, timeMs }
}

function isWhole(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= most
}

const behindMaxMs = 300_000
const aheadMaxMs = 60_000

/** True where an order is fresh: older ones may have been kept by others, and sent when they are not wanted any more. */
export function isFresh({ timeMs }: NamingOrder, nowMs: number): boolean {
  return timeMs >= nowMs - behindMaxMs && timeMs <= nowMs + aheadMaxMs
}

/** Where an order may be sent to: the hosts of a gateway, and the host that this request names. */
export interface OrderPlace {
  /** Lower case, without ports. */
  readonly rootHosts: readonly string[]
  /** The Host header of the request. */
  readonly hostHeader: string
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/

/**
 * True where an order is for this gateway. A root host is ours under any port, because a proxy may stand in front. A gateway of
 * this machine is any program on it, so the port counts there, too.
 */
export function isForHere({ gateway }: NamingOrder, { rootHosts, hostHeader }: OrderPlace): boolean {
  const host = gateway.toLowerCase()
  if (loopback.test(host)) return rootHosts.includes('localhost') && host === hostHeader.toLowerCase()
  return rootHosts.includes(host.replace(/:\d{1,5}$/, ''))
}
