import type { Id } from '../format/id.js'
import type { Lease, NoSale } from './lease.js'

/** What can be changed of a name that somebody holds. */
export const changeActions = [
  ...(['set-record', 'remove-record', 'set-record-metadata', 'remove-record-metadata'] as const),
  ...(['transfer-record', 'add-controller', 'remove-controller', 'transfer'] as const),
] as const
export type ChangeAction = (typeof changeActions)[number]

/** The descriptive fields of a record. */
export interface RecordMetadata {
  readonly displayName?: string
  /** Id of content. */
  readonly recordLogo?: string
  readonly recordDescription?: string
  readonly recordKeywords?: readonly string[]
}

/** Absent members stay as they are, null clears one. */
export type MetadataChange = { readonly [Member in keyof RecordMetadata]: RecordMetadata[Member] | null }

/** A change. Which members count follows from the action. */
export interface ChangeWish {
  readonly antId: string
  /** `@`: the record of the name itself. */
  readonly undername: string
  /** What the record points at. */
  readonly target?: Id
  readonly ttlSeconds?: number
  /** Who gets the name or the record, or who is a controller; of controllers, absent: the service. */
  readonly address?: string
  readonly metadata?: MetadataChange
}

/** What is kept of a record besides where it points. */
export interface RecordFacts {
  /** Whom the owner of the name has given it to. */
  readonly owner?: string
  readonly metadata?: RecordMetadata
}

/** Who may do what with a name, and with one record of it. */
export interface Holding extends Pick<Lease, 'name' | 'owner' | 'controllers' | 'serviceRevoked'> {
  readonly recordOwner?: string
}

const controllersMax = 16

/** True where the change is one of the whole name, which its owner alone may make. */
export function isOwnersOnly(action: ChangeAction): boolean {
  return action === 'transfer' || action === 'add-controller' || action === 'remove-controller'
}

/**
 * Owners may do everything, controllers change all records, and the owner of a record changes and gives away that one. Records
 * are taken off by those who answer for the whole name only.
 */
export function mayChange(action: ChangeAction, by: string, holding: Holding): boolean {
  const { owner, controllers = [], recordOwner } = holding
  if (by === owner) return true
  if (isOwnersOnly(action)) return false
  if (by === recordOwner && action !== 'remove-record') return true
  return controllers.includes(by) && action !== 'transfer-record'
}

/** The lease behind a change of the whole name, or why there is none. */
export function leaseChanged(action: ChangeAction, lease: Lease, { address }: ChangeWish): Lease | NoSale {
  const { controllers = [], serviceRevoked, ...rest } = lease
  if (action === 'transfer') {
    if (address === undefined || address === lease.owner)
      return { noSale: 'The name is held by this address' }
    // Whom the old owner has trusted the new one need not trust.
    return { ...rest, owner: address, serviceRevoked: true }
  }
  const isAdding = action === 'add-controller'
  const isThere = address === undefined ? serviceRevoked !== true : controllers.includes(address)
  if (isThere === isAdding)
    return { noSale: isAdding ? 'The controller is there already' : 'There is no such controller' }
  if (address === undefined) {
    const kept = { ...rest, controllers }
    return isAdding ? kept : { ...kept, serviceRevoked: true }
  }
  if (isAdding && controllers.length >= controllersMax)
    return { noSale: `A name can have ${controllersMax} controllers at most` }
  const next = isAdding ? [...controllers, address] : controllers.filter((one) => one !== address)
  return { ...lease, controllers: next }
}

/** The facts of a record behind a change of them, or why there is none. */
export function factsChanged(
  action: ChangeAction,
  facts: RecordFacts,
  { address, metadata = {} }: ChangeWish,
): RecordFacts | NoSale {
  const { metadata: before, owner } = facts
  if (action === 'transfer-record') {
    if (address === undefined || address === owner) return { noSale: 'The record is held by this address' }
    return { ...facts, owner: address }
  }
  const kept = owner === undefined ? {} : { owner }
  if (action === 'remove-record-metadata')
    return before === undefined ? { noSale: 'The record has no metadata' } : kept
  const entries = Object.entries({ ...before, ...metadata }).filter(([, value]) => value !== null)
  return entries.length === 0 ? kept : { ...kept, metadata: Object.fromEntries(entries) as RecordMetadata }
}
