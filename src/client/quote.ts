import { wincOf } from './amounts.js'
import type { SluiceClient } from './client.js'
import { ClientError } from './errors.js'
import { inParallel } from './parallel.js'
import { fieldsOfAnswer } from './service.js'

/** What uploads will cost at most, as of now. */
export interface UploadQuote {
  /** Items that are free whatever comes in between of this wallet's. */
  readonly freeItems: number
  /** The most that all of them are charged together. */
  readonly winc: bigint
  /** The same in dollars, fees of a top-up included; undefined: free, or the service has no rates. */
  readonly usd: number | undefined
}

/** What a service gives away. */
export interface FreeBytes {
  /** Larger items are never free. Bytes of the whole signed item; infinite for a wallet that pays for nothing. */
  readonly itemMaxBytes: number
  /** That are left; null: any number. */
  readonly leftBytes: number | null
  /** Each free item takes so many of them beyond its own. */
  readonly itemOverheadBytes: number
}

/** What is free for a wallet now. `address`: undefined where none is known, so that what is left of it is not. */
export async function freeBytesOf(client: SluiceClient, address: string | undefined): Promise<FreeBytes> {
  const { service } = client.uploadParts
  const info = fieldsOfAnswer(await service.ask({ path: '/v1/info' }), 'the info')
  const itemMaxBytes = Number(info.freeUploadLimitBytes ?? 0)
  if (address === undefined) return { itemMaxBytes, leftBytes: 0, itemOverheadBytes: 0 }
  // The upload service also knows what is left of the client's address range; others count wallets alone, elsewhere.
  const path = `/v1/account/free?address=${encodeURIComponent(address)}`
  const answer = await service.ask({ path, accepted: [200, 404] })
  if (answer.status === 404) {
    const { bytesRemaining } = await client.getFreeStatus(address)
    return { itemMaxBytes, leftBytes: bytesRemaining, itemOverheadBytes: 0 }
  }
  const { bytesRemaining, rangeBytesRemaining, itemOverheadBytes } = fieldsOfAnswer(answer, 'what is free')
  if (bytesRemaining === null && rangeBytesRemaining === null)
    return { itemMaxBytes: Number.POSITIVE_INFINITY, leftBytes: null, itemOverheadBytes: 0 }
  const left = [bytesRemaining, rangeBytesRemaining].filter((bytes) => typeof bytes === 'number')
  const overhead = typeof rangeBytesRemaining === 'number' ? Number(itemOverheadBytes ?? 0) : 0
  return {
    itemMaxBytes,
    leftBytes: left.length === 0 ? null : Math.min(...left),
    itemOverheadBytes: Number.isSafeInteger(overhead) && overhead > 0 ? overhead : 0,
  }
}

/** Requests for prices on their way at once. */
const requestsAtOnce = 8
const exactPricesMax = 100
/** Where there are more sizes than that, each is priced as one that is up to a twentieth larger. */
const stepFactor = 1.05

/**
 * What items of these sizes (bytes with their headers) cost together: the price of each, without what is free. Never less than
 * what is charged while prices and free bytes stay as they are, in whichever order the items come. `itemsInside`: of those that
 * are bundles, together; each takes as much of what is free beyond its bytes as one that comes alone.
 */
export async function quoteUploads(
  client: SluiceClient,
  itemBytes: readonly number[],
  itemsInside = 0,
): Promise<UploadQuote> {
  const all = await freeBytesOf(client, client.currentSigner?.address)
  const free = withoutInside(all, itemsInside)
  const isSmall = (bytes: number): boolean => bytes <= free.itemMaxBytes
  const small = itemBytes.filter(isSmall)
  const smallBytes = small.reduce((sum, bytes) => sum + bytes + free.itemOverheadBytes, 0)
  const isAllFree = free.leftBytes === null || smallBytes <= free.leftBytes
  const charged = isAllFree ? itemBytes.filter((bytes) => !isSmall(bytes)) : itemBytes
  const freeItems = itemBytes.length - charged.length
  if (charged.length === 0) return { freeItems, winc: 0n, usd: undefined }
  const priceOf = await pricesOf(client, charged)
  const whole = charged.reduce((sum, bytes) => sum + priceOf(bytes), 0n)
  const saved = isAllFree ? 0n : leastSaved(small, free, priceOf)
  const winc = whole - saved
  return { freeItems, winc, usd: await dollarsOf(client, winc) }
}

function withoutInside(free: FreeBytes, itemsInside: number): FreeBytes {
  const { leftBytes, itemOverheadBytes } = free
  if (leftBytes === null) return free
  return { ...free, leftBytes: Math.max(0, leftBytes - itemsInside * itemOverheadBytes) }
}

/**
 * The least that free bytes save on items of which not all fit. Some item did not fit, so less than the largest one is left over:
 * all but that is used, by items of the lowest price for a byte at worst.
 */
function leastSaved(
  sizes: readonly number[],
  { leftBytes, itemOverheadBytes }: FreeBytes,
  priceOf: (bytes: number) => bigint,
): bigint {
  const largest = sizes.reduce((most, bytes) => Math.max(most, bytes), 0) + itemOverheadBytes
  const used = BigInt(Math.max(0, (leftBytes ?? 0) - largest))
  let least: readonly [winc: bigint, bytes: bigint] | undefined
  for (const size of sizes) {
    const [winc, bytes] = [priceOf(size), BigInt(size + itemOverheadBytes)]
    if (least === undefined || winc * least[1] < least[0] * bytes) least = [winc, bytes]
  }
  return least === undefined || least[1] === 0n ? 0n : (used * least[0]) / least[1]
}

/** Prices by size; larger items never cost less. */
async function pricesOf(client: SluiceClient, sizes: readonly number[]): Promise<(bytes: number) => bigint> {
  const distinct = [...new Set(sizes)].sort((one, other) => one - other)
  const priced = distinct.length <= exactPricesMax ? distinct : stepsOver(distinct)
  const prices = new Map<number, bigint>()
  await inParallel(priced, requestsAtOnce, async (bytes) => {
    const [cost] = await client.getUploadCosts({ bytes: [bytes] })
    prices.set(bytes, wincOf(cost?.winc ?? 0))
  })
  const asking = priced.values()
  let step = asking.next().value ?? 0
  const by = new Map<number, bigint>()
  for (const bytes of distinct) {
    while (step < bytes) step = asking.next().value ?? bytes
    by.set(bytes, prices.get(step) ?? 0n)
  }
  return (bytes) => by.get(bytes) ?? 0n
}

/** Sizes of which one is as large as each given one, or up to a twentieth larger. `sizes`: ascending. */
function stepsOver(sizes: readonly number[]): number[] {
  const steps: number[] = []
  for (const bytes of [...sizes].reverse()) {
    const last = steps.at(-1)
    if (last === undefined || bytes * stepFactor < last) steps.push(bytes)
  }
  return steps.reverse()
}

/** Winc in dollars, as a top-up would cost them; undefined where the service has no rate now: credits suffice. */
export async function dollarsOf(client: SluiceClient, winc: bigint): Promise<number | undefined> {
  const rates = await client.getFiatRates().catch((error: unknown) => {
    if (error instanceof ClientError) return undefined
    throw error
  })
  const rate = rates?.fiat?.usd
  if (rates === undefined || rate === undefined || !(Number(rates.winc) > 0)) return undefined
  return (Number(winc) / Number(rates.winc)) * rate
}

/** The page on which people buy credits for a wallet; undefined where the payment service names none. */
export async function creditsPageOf(client: SluiceClient, address: string): Promise<string | undefined> {
  const { creditsPage: path } = await client.getServiceInfo()
  const base = `${client.addresses.paymentUrl.replace(/\/+$/, '')}/`
  if (typeof path !== 'string' || !URL.canParse(path, base)) return undefined
  const page = new URL(path, base)
  if (!/^https?:$/.test(page.protocol)) return undefined
  page.searchParams.set('address', address)
  return page.href
}
