import { parseId } from '../format/id.js'
import { type LeaseIntent, type LeaseWish, leaseIntents, type RecordWish, wishFault } from '../names/lease.js'
import { type ServiceAnswer, words } from './call.js'

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
): LeaseWish | ServiceAnswer {
  const intent = intentOf(intentText)
  if (intent === undefined) return words(400, 'Invalid intent parameter')
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
    ...{ intent, name: nameText.toLowerCase() },
    ...(isType ? { type } : {}),
    ...(years === undefined ? {} : { years }),
    ...(increaseQty === undefined ? {} : { increaseQty }),
    ...(typeof processId === 'string' ? { processId } : {}),
  }
  const fault = wishFault(wish)
  return fault === undefined ? wish : words(400, fault)
}

/** Where a record is to point, out of JSON; or what is wrong with it. */
export function readRecordWish(
  action: 'set-record' | 'remove-record',
  given: Readonly<Record<string, unknown>>,
): RecordWish | ServiceAnswer {
  const { antId, undername = '@', transactionId, ttlSeconds = 3600 } = given
  if (typeof antId !== 'string' || !/^[\w-]{1,128}$/.test(antId))
    return words(400, 'Missing required parameter: antId')
  if (typeof undername !== 'string' || !/^(?:@|[a-z0-9_-]{1,61})$/i.test(undername))
    return words(400, 'Invalid undername')
  const place = { antId, undername: undername.toLowerCase() }
  if (action === 'remove-record') return place
  const target = typeof transactionId === 'string' ? parseId(transactionId) : undefined
  if (target === undefined) return words(400, 'Invalid transactionId')
  const isTtl = typeof ttlSeconds === 'number' && Number.isSafeInteger(ttlSeconds)
  if (!isTtl || ttlSeconds < 60 || ttlSeconds > 86_400)
    return words(400, 'Invalid ttlSeconds: a whole number from 60 to 86400')
  return { ...place, target, ttlSeconds }
}

/** What the owner of a name signs besides the nonce: the change, member by member. */
export function ownerMessage(action: 'set-record' | 'remove-record', wish: RecordWish): string {
  const { antId, undername, target, ttlSeconds } = wish
  const fields = target === undefined ? [antId, undername] : [antId, undername, target, String(ttlSeconds)]
  return ['arns', action, ...fields].join('\n')
}
