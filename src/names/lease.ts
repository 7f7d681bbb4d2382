import { parseId } from '../format/id.js'

/** What can be bought of a name. */
export const leaseIntents = ['buy-name', 'extend-lease', 'upgrade-name', 'increase-undername-limit'] as const
export type LeaseIntent = (typeof leaseIntents)[number]

/** What somebody wants to buy. Which members count follows from the intent. */
export interface LeaseWish {
  readonly intent: LeaseIntent
  /** A base name, lower case. */
  readonly name: string
  readonly type?: 'lease' | 'permabuy'
  readonly years?: number
  readonly increaseQty?: number
  /** What the name points at. */
  readonly processId?: string
}

/** A name that was bought. */
export interface Lease {
  readonly name: string
  /** Address of a wallet. */
  readonly owner: string
  /** Names the holder of the name's records to clients. */
  readonly antId: string
  readonly type: 'lease' | 'permabuy'
  /** When it ends; 0: never. */
  readonly endMs: number
  readonly undernameLimit: number
  readonly boughtMs: number
  readonly years?: number
  /** Addresses that may change its records besides the owner. */
  readonly controllers?: readonly string[]
  /** The owner has revoked the service: it changes nothing on the word of the owner any more. */
  readonly serviceRevoked?: true
}

/** Why something is not for sale. The text is for the client. */
export interface NoSale {
  readonly noSale: string
}

const yearMs = 365 * 24 * 3600_000
const yearsMax = 5
/** Behind the end of a lease only its holder's name can be extended, so that nobody loses it by one day. */
export const graceMs = 14 * 24 * 3600_000
const firstUndernames = 10
const undernamesMax = 10_000

/** A base name of the network: letters, digits, dashes inside; 43 characters would look like an id. */
const nameShape = /^[a-z0-9](?:[a-z0-9-]{0,49}[a-z0-9])?$/

function noSale(text: string): NoSale {
  return { noSale: text }
}

/** True where nothing can be sold. */
export function isNoSale(value: object): value is NoSale {
  return 'noSale' in value
}

/** What is wrong with a wish whatever is sold already; undefined: nothing. */
export function wishFault({
  intent,
  name,
  type,
  years,
  increaseQty,
  processId,
}: LeaseWish): string | undefined {
  const isCount = (value: number | undefined, most: number): boolean =>
    value !== undefined && Number.isSafeInteger(value) && value >= 1 && value <= most
  if (!nameShape.test(name) || name.length === 43) return `Invalid name: '${name}'`
  if (intent === 'increase-undername-limit')
    return isCount(increaseQty, undernamesMax)
      ? undefined
      : `Missing required parameter: increaseQty. Must be a whole number from 1 to ${undernamesMax}`
  if (intent === 'extend-lease')
    return isCount(years, yearsMax)
      ? undefined
      : `Missing required parameter: years. Must be 1 to ${yearsMax}`
  if (intent === 'upgrade-name') return undefined
  if (type !== 'lease' && type !== 'permabuy')
    return "Missing required parameter: type. Must be either 'permabuy' or 'lease'"
  if (type === 'lease' && !isCount(years, yearsMax))
    return `Missing required parameter: years. Must be 1 to ${yearsMax}`
  return processId === undefined || parseId(processId) !== undefined ? undefined : 'Invalid processId'
}

/** True where the lease keeps its name from others. */
export function isHeld({ endMs }: Lease, nowMs: number): boolean {
  return endMs === 0 || endMs + graceMs > nowMs
}

/** The lease as the wish would change it, or why it cannot be. `isTaken`: the operator has given the name to somebody. */
export function leaseAfter(
  wish: LeaseWish,
  before: Lease | undefined,
  given: {
    readonly owner: string
    readonly antId: string
    readonly isTaken: boolean
    readonly nowMs: number
  },
): Lease | NoSale {
  const fault = wishFault(wish)
  if (fault !== undefined) return noSale(fault)
  const { owner, antId, isTaken, nowMs } = given
  const { intent, name, type = 'lease', years = 0, increaseQty = 0 } = wish
  const held = before !== undefined && isHeld(before, nowMs) ? before : undefined
  if (intent === 'buy-name') {
    if (held !== undefined || isTaken) return noSale(`The name '${name}' is already registered`)
    const endMs = type === 'lease' ? nowMs + years * yearMs : 0
    const facts = { name, owner, antId, type, endMs, undernameLimit: firstUndernames, boughtMs: nowMs }
    return { ...facts, ...(type === 'lease' ? { years } : {}) }
  }
  if (held === undefined) return noSale(`The name '${name}' is not registered`)
  if (intent === 'increase-undername-limit') {
    const undernameLimit = held.undernameLimit + increaseQty
    return undernameLimit > undernamesMax
      ? noSale(`The name '${name}' can have ${undernamesMax} undernames at most`)
      : { ...held, undernameLimit }
  }
  if (held.type === 'permabuy') return noSale(`The name '${name}' is permanent already`)
  if (intent === 'upgrade-name') return { ...held, type: 'permabuy', endMs: 0 }
  const endMs = held.endMs + years * yearMs
  return endMs > nowMs + yearsMax * yearMs
    ? noSale(`The name '${name}' can be leased for ${yearsMax} years at most`)
    : { ...held, endMs, years }
}

/** ARIO, in millionths. */
const ario = 1_000_000n

/** What a name of so many characters costs before years are counted: short ones are scarce. */
function basePrice(length: number): bigint {
  if (length <= 2) return 100_000n * ario
  if (length <= 4) return 10_000n * ario
  if (length <= 12) return 1000n * ario
  return 200n * ario
}

/**
 * What a wish costs on the list of this machine, in millionths of ARIO. A year costs a fifth of the base price, for ever as much
 * as twenty years. Registries of the network have prices of their own, which follow demand.
 */
export function leasePrice({ intent, name, type, years = 1, increaseQty = 0 }: LeaseWish): bigint {
  const base = basePrice(name.length)
  const yearly = base / 5n
  if (intent === 'increase-undername-limit') return (base / 1000n) * BigInt(increaseQty)
  if (intent === 'extend-lease') return yearly * BigInt(years)
  if (intent === 'upgrade-name') return yearly * 20n
  return base + yearly * (type === 'permabuy' ? 20n : BigInt(years))
}
