import { parseId } from '../../format/id.js'
import {
  type ChangeAction,
  type ChangeWish,
  changeActions,
  isOwnersOnly,
  type MetadataChange,
} from '../../names/change.js'
import { type LeaseIntent, type LeaseWish, leaseIntents, wishFault } from '../../names/lease.js'
import { addressKind, spelled } from '../books/wallets.js'
import { plainAnswer, type RouteAnswer } from '../requests/payment-route.js'

/** `Buy-Record` is how `Buy-Name` was called. */
const oldIntent = 'buy-record'

/** An intent in any case of letters; undefined where there is no such. */
export function intentOf(text: string): LeaseIntent | undefined {
  const lower = text.toLowerCase()
  return leaseIntents.find((one) => one === (lower === oldIntent ? 'buy-name' : lower))
}

/** What is to be bought, out of fields of a query or of JSON; or what is wrong with it. */
export function readWish(
  intentText: string,
  nameText: string,
  field: (name: string) => unknown,
): LeaseWish | RouteAnswer {
  const intent = intentOf(intentText)
  if (intent === undefined) return plainAnswer(400, 'Invalid intent parameter')
  const whole = (name: string): number | undefined => {
    const value = field(name)
    return value === undefined ? undefined : /^\d{1,9}$/.test(String(value)) ? Number(value) : 0
  }
  const [years, increaseQty, type, processId] = [
    whole('years'),
    whole('increaseQty'),
    field('type'),
    field('processId'),
  ]
  const isType = type === 'lease' || type === 'permabuy'
  const wish: LeaseWish = {
    intent,
    name: nameText.toLowerCase(),
    ...(isType ? { type } : {}),
    ...(years === undefined ? {} : { years }),
    ...(increaseQty === undefined ? {} : { increaseQty }),
    ...(typeof processId === 'string' ? { processId } : {}),
  }
  const fault = wishFault(wish)
  return fault === undefined ? wish : plainAnswer(400, fault)
}

/** A change, and what the owner signs of it besides the nonce: its members, as they were given, one a line. */
export interface GivenChange {
  readonly wish: ChangeWish
  readonly message: string
}

type Given = Readonly<Record<string, unknown>>

/** The change that is named so; undefined where there is none. */
export function changeOf(text: string): ChangeAction | undefined {
  return changeActions.find((one) => one === text)
}

/** What is to be changed, out of JSON; or what is wrong with it. */
export function readChange(action: ChangeAction, given: Given): GivenChange | RouteAnswer {
  const { antId, undername = '@' } = given
  if (typeof antId !== 'string' || !/^[\w-]{1,128}$/.test(antId))
    return plainAnswer(400, 'Missing required parameter: antId')
  if (isOwnersOnly(action)) {
    const address = readAddress(given, action !== 'transfer')
    if (address !== undefined && typeof address !== 'string') return address
    const wish = { antId, undername: '@', ...(address === undefined ? {} : { address }) }
    return { wish, message: messageOf(action, [antId, address === undefined ? '' : String(given.target)]) }
  }
  if (typeof undername !== 'string' || !/^(?:@|[a-z0-9_-]{1,61})$/i.test(undername))
    return plainAnswer(400, 'Invalid undername')
  const place = { antId, undername: undername.toLowerCase() }
  const change = ((): ChangeFields | RouteAnswer => {
    if (action === 'set-record') return readTarget(given)
    if (action === 'set-record-metadata') return readMetadata(given)
    if (action === 'transfer-record') return readNewOwner(given, place.undername)
    return { members: {}, fields: [] }
  })()
  if ('status' in change) return change
  return {
    wish: { ...place, ...change.members },
    message: messageOf(action, [antId, undername, ...change.fields]),
  }
}

interface ChangeFields {
  readonly members: Omit<ChangeWish, 'antId' | 'undername'>
  readonly fields: readonly string[]
}

function messageOf(action: ChangeAction, fields: readonly string[]): string {
  return ['arns', action, ...fields].join('\n')
}

function readTarget({ transactionId, ttlSeconds = 3600 }: Given): ChangeFields | RouteAnswer {
  const target = typeof transactionId === 'string' ? parseId(transactionId) : undefined
  if (target === undefined) return plainAnswer(400, 'Invalid transactionId')
  const isTtl = typeof ttlSeconds === 'number' && Number.isSafeInteger(ttlSeconds)
  if (!isTtl || ttlSeconds < 60 || ttlSeconds > 86_400)
    return plainAnswer(400, 'Invalid ttlSeconds: a whole number from 60 to 86400')
  return { members: { target, ttlSeconds }, fields: [target, String(ttlSeconds)] }
}

function readNewOwner(given: Given, undername: string): ChangeFields | RouteAnswer {
  if (undername === '@')
    return plainAnswer(400, 'The record of the name itself is not given away alone: transfer the name')
  const address = readAddress(given, false)
  if (typeof address !== 'string') return address ?? plainAnswer(400, 'Invalid target')
  return { members: { address }, fields: [String(given.target)] }
}

/** Undefined: absent, and it may be. */
function readAddress({ target }: Given, mayBeAbsent: boolean): string | undefined | RouteAnswer {
  if (target === undefined && mayBeAbsent) return undefined
  const isAddress = typeof target === 'string' && addressKind(target) !== undefined
  return isAddress ? spelled(target) : plainAnswer(400, 'Invalid target: an address of a wallet')
}

const textMax: Readonly<Record<string, number>> = { displayName: 61, recordDescription: 512 }
const keywordsMax = 16
const keywordMax = 32
/** Control characters part the members in what is signed. */
const control = /\p{Cc}/u

/** Null and absent are signed alike, and so are keywords that are joined, because clients sign them so. */
function readMetadata(given: Given): ChangeFields | RouteAnswer {
  const { displayName, recordLogo, recordDescription, recordKeywords } = given
  for (const [name, value] of Object.entries({ displayName, recordDescription })) {
    const isText = typeof value === 'string' && value.length <= (textMax[name] ?? 0) && !control.test(value)
    if (value !== undefined && value !== null && !isText) return plainAnswer(400, `Invalid ${name}`)
  }
  const isLogo = typeof recordLogo === 'string' && parseId(recordLogo) !== undefined
  if (recordLogo !== undefined && recordLogo !== null && !isLogo)
    return plainAnswer(400, 'Invalid recordLogo')
  if (recordKeywords !== undefined && recordKeywords !== null && !areKeywords(recordKeywords))
    return plainAnswer(400, 'Invalid recordKeywords')
  const metadata = { displayName, recordLogo, recordDescription, recordKeywords } as MetadataChange
  const members = Object.entries(metadata).filter(([, value]) => value !== undefined)
  if (members.length === 0) return plainAnswer(400, 'Nothing is to be changed')
  const absent = '\0'
  return {
    members: { metadata: Object.fromEntries(members) },
    fields: [
      metadata.displayName ?? absent,
      metadata.recordLogo ?? absent,
      metadata.recordDescription ?? absent,
      metadata.recordKeywords?.join('\u0001') ?? absent,
    ],
  }
}

function areKeywords(value: unknown): boolean {
  const isWord = (one: unknown): boolean =>
    typeof one === 'string' && one !== '' && one.length <= keywordMax && !control.test(one)
  return Array.isArray(value) && value.length <= keywordsMax && value.every(isWord)
}
