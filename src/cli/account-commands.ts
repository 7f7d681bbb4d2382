import { creditsText, dollarsText, wincOf } from '../client/amounts.js'
import type { SluiceClient } from '../client/client.js'
import { itemSizeOf } from '../client/prepare.js'
import { dollarsOf, freeBytesOf } from '../client/quote.js'
import { WrongWords } from './command.js'
import { program } from './program-name.js'
import { clientCommand, clientOf, show } from './wallet.js'

const priceHelp = `${program} price: what uploads of so many bytes cost, in credits and money

Usage: ${program} price BYTES... [--currency usd]

With a key it says what is free for its wallet now. The header that each item has is counted, too.

Example:
  ${program} price 1000000 --currency eur
`

/** Prices of uploads. */
export const price = clientCommand(
  'price',
  priceHelp,
  { currency: { type: 'string' } },
  async (sizes, values) => {
    const bytes = sizes.map(Number)
    if (bytes.length === 0 || bytes.some((size) => !Number.isSafeInteger(size) || size < 0))
      throw new WrongWords('give numbers of BYTES')
    const client = await clientOf(values)
    const signer = client.currentSigner ?? arweaveSizes
    const itemBytes = bytes.map((size) => itemSizeOf(size, { tags: someType }, signer))
    const [costs, free] = await Promise.all([
      client.getUploadCosts({ bytes: itemBytes }),
      freeBytesOf(client, client.currentSigner?.address),
    ])
    const isKnown = client.currentSigner !== undefined
    const priced: object[] = []
    const lines: string[] = []
    for (const [at, { winc }] of costs.entries()) {
      const size = itemBytes[at] ?? 0
      const isSmall = size <= free.itemMaxBytes
      const isFree = isSmall && (free.leftBytes === null || size + free.itemOverheadBytes <= free.leftBytes)
      const money = await moneyText(client, size, winc, String(values.currency ?? 'usd'))
      const paid = money === undefined ? creditsText(winc) : `${creditsText(winc)} (${money})`
      const small = isKnown ? 'no free bytes are left' : 'free while the wallet has free bytes left'
      lines.push(`${bytes[at]} bytes: ${isFree ? 'free' : isSmall ? `${paid}; ${small}` : paid}`)
      priced.push({ bytes: bytes[at], itemBytes: size, winc, isFree, ...(money !== undefined && { money }) })
    }
    return show(values, { costs: priced }, lines)
  },
)

/** What an item costs in a currency; undefined: the service has no rate of the dollar now. */
async function moneyText(
  client: SluiceClient,
  byteCount: number,
  winc: string,
  currency: string,
): Promise<string | undefined> {
  if (currency === 'usd') {
    const usd = await dollarsOf(client, wincOf(winc))
    return usd === undefined ? undefined : dollarsText(usd)
  }
  const { amount } = await client.getFiatEstimateForBytes({ byteCount, currency })
  return `${amount} ${currency}`
}

/** Sizes of the largest headers that there are, where no key says which ones it will have: those of Arweave's keys. */
const arweaveSizes = { signatureType: 1, owner: new Uint8Array(512) }
/** A tag as most items have it. */
const someType = [{ name: 'Content-Type', value: 'application/octet-stream' }]

const balanceHelp = `${program} balance: credits and free bytes of a wallet

Usage: ${program} balance [ADDRESS]

Example:
  ${program} balance --key wallet.json
`

/** Credits of a wallet. */
export const balance = clientCommand('balance', balanceHelp, {}, async ([given], values) => {
  const client = await clientOf(values)
  const address = given ?? client.currentSigner?.address
  if (address === undefined) throw new WrongWords('give an ADDRESS or a key')
  const [held, free] = await Promise.all([client.getBalance(address), client.getFreeStatus(address)])
  const left = free.bytesRemaining === null ? 'no limit' : `${free.bytesRemaining} bytes`
  const usd = wincOf(held.winc) === 0n ? undefined : await dollarsOf(client, wincOf(held.winc))
  const lines = [
    address,
    usd === undefined ? creditsText(held.winc) : `${creditsText(held.winc)} (${dollarsText(usd)})`,
    `with shared credits: ${creditsText(held.effectiveBalance)}`,
  ]
  return show(values, { address, ...held, ...free }, [...lines, `free: ${left}`])
})

const topUpHelp = `${program} top-up: buys credits

Usage: ${program} top-up AMOUNT CURRENCY [--for ADDRESS]     by card: prints where to pay
       ${program} top-up --tx ID --token WORD                tells the service of a transfer to its address

AMOUNT is in the smallest unit: 1000 usd are ten dollars.

Example:
  ${program} top-up 1000 usd --key wallet.json
`

const topUpOptions = { tx: { type: 'string' }, for: { type: 'string' } } as const

/** Buys credits. */
export const topUpCommand = clientCommand('top-up', topUpHelp, topUpOptions, async (positionals, values) => {
  const client = await clientOf(values)
  if (typeof values.tx === 'string') {
    const funded = await client.submitFundTransaction({ txId: values.tx })
    return show(values, funded, [`${funded.status}: ${creditsText(funded.winc)}`])
  }
  const [amount, currency] = positionals
  const owner = typeof values.for === 'string' ? values.for : client.currentSigner?.address
  if (owner === undefined || currency === undefined || !/^\d{1,9}$/.test(amount ?? ''))
    throw new WrongWords('give AMOUNT and CURRENCY, and a key or --for')
  const session = await client.createCheckoutSession({ amount: { amount: Number(amount), currency }, owner })
  return show(values, session, [
    `${creditsText(session.winc)} for ${session.paymentAmount} ${currency}, in its smallest unit`,
    session.url ?? '',
  ])
})

const shareHelp = `${program} share: lets another wallet upload with your credits

Usage: ${program} share ADDRESS WINC [--seconds N]
       ${program} share ADDRESS --revoke
       ${program} share --list

  --seconds N  how long it holds; until it is used up or revoked unless given

Example:
  ${program} share 0x8ba1f109551bD432803012645Ac136ddd64DBA72 1000000000 --seconds 86400 --key wallet.json
`

const shareOptions = {
  seconds: { type: 'string' },
  revoke: { type: 'boolean' },
  list: { type: 'boolean' },
} as const

/** Shares credits. */
export const share = clientCommand('share', shareHelp, shareOptions, async ([address, winc], values) => {
  const client = await clientOf(values)
  if (values.list === true) {
    const shares = await client.getCreditShareApprovals()
    const line = (one: {
      approvedAddress: string
      payingAddress: string
      approvedWincAmount: string
    }): string => `${one.payingAddress} -> ${one.approvedAddress}: ${creditsText(one.approvedWincAmount)}`
    return show(values, shares, [...shares.givenApprovals, ...shares.receivedApprovals].map(line))
  }
  if (address === undefined) throw new WrongWords('give an ADDRESS')
  if (values.revoke === true) {
    const revoked = await client.revokeCredits({ revokedAddress: address })
    return show(values, revoked, [`${revoked.length} approvals revoked`])
  }
  if (!/^\d{1,30}$/.test(winc ?? '')) throw new WrongWords('give how many WINC')
  const seconds = values.seconds === undefined ? undefined : Number(values.seconds)
  if (seconds !== undefined && !(Number.isSafeInteger(seconds) && seconds > 0))
    throw new WrongWords(`--seconds ${values.seconds} is no number of seconds`)
  const approval = await client.shareCredits({
    approvedAddress: address,
    approvedWincAmount: winc ?? '',
    ...(seconds !== undefined && { expiresBySeconds: seconds }),
  })
  return show(values, approval, [
    `${approval.approvalDataItemId}: ${creditsText(approval.approvedWincAmount)}`,
  ])
})

const historyHelp = `${program} history: payments into your credits, newest first

Usage: ${program} history [--limit N] [--cursor TEXT]

Example:
  ${program} history --key wallet.json --json
`

const historyOptions = { limit: { type: 'string' }, cursor: { type: 'string' } } as const

/** Payments of the key's wallet. */
export const history = clientCommand('history', historyHelp, historyOptions, async (_, values) => {
  const client = await clientOf(values)
  const { limit, cursor } = values
  const page = await client.getPaymentHistory({
    ...(typeof limit === 'string' && { limit: Number(limit) }),
    ...(typeof cursor === 'string' && { cursor }),
  })
  const lines = page.payments.map(
    ({ date, type, wincCredited }) => `${date} ${type} ${creditsText(wincCredited)}`,
  )
  if (lines.length === 0) return show(values, page, ['no payment into these credits yet'])
  return show(values, page, page.cursor === null ? lines : [...lines, `more: --cursor ${page.cursor}`])
})
