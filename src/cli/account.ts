import { clientCommand, clientOf, creditsText, show, WrongWords } from './wallet.js'

const priceHelp = `sluice price: what uploads of so many bytes cost

Usage: sluice price BYTES... [--currency usd]

Example:
  sluice price 1000000 --currency eur
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
    const costs = await client.getUploadCosts({ bytes })
    const { currency } = values
    const fiat =
      typeof currency === 'string'
        ? await Promise.all(bytes.map((byteCount) => client.getFiatEstimateForBytes({ byteCount, currency })))
        : []
    const lines = costs.map(({ winc }, at) => {
      const money = fiat[at] === undefined ? '' : `, ${fiat[at]?.amount} ${fiat[at]?.currency}`
      return `${bytes[at]} bytes: ${creditsText(winc)}${money}`
    })
    return show(values, { costs, fiat }, lines)
  },
)

const balanceHelp = `sluice balance: credits and free bytes of a wallet

Usage: sluice balance [ADDRESS]

Example:
  sluice balance --key wallet.json
`

/** Credits of a wallet. */
export const balance = clientCommand('balance', balanceHelp, {}, async ([given], values) => {
  const client = await clientOf(values)
  const address = given ?? client.currentSigner?.address
  if (address === undefined) throw new WrongWords('give an ADDRESS or a key')
  const [held, free] = await Promise.all([client.getBalance(address), client.getFreeStatus(address)])
  const left = free.bytesRemaining === null ? 'no limit' : `${free.bytesRemaining} bytes`
  const lines = [
    address,
    creditsText(held.winc),
    `with shared credits: ${creditsText(held.effectiveBalance)}`,
  ]
  return show(values, { address, ...held, ...free }, [...lines, `free: ${left}`])
})

const topUpHelp = `sluice top-up: buys credits

Usage: sluice top-up AMOUNT CURRENCY [--for ADDRESS]     by card: prints where to pay
       sluice top-up --tx ID --token WORD                tells the service of a transfer to its address

AMOUNT is in the smallest unit: 1000 usd are ten dollars.

Example:
  sluice top-up 1000 usd --key wallet.json
`

const topUpOptions = { tx: { type: 'string' }, for: { type: 'string' } } as const

/** Buys credits. */
export const topUpCommand = clientCommand('top-up', topUpHelp, topUpOptions, async (positionals, values) => {
  const client = await clientOf(values)
  if (typeof values.tx === 'string') {
    const told = await client.submitFundTransaction({ txId: values.tx })
    return show(values, told, [`${told.status}: ${creditsText(told.winc)}`])
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

const shareHelp = `sluice share: lets another wallet upload with your credits

Usage: sluice share ADDRESS WINC [--seconds N]
       sluice share ADDRESS --revoke
       sluice share --list

  --seconds N  how long it holds; until it is used up or revoked unless given

Example:
  sluice share 0x8ba1f109551bD432803012645Ac136ddd64DBA72 1000000000 --seconds 86400 --key wallet.json
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

const historyHelp = `sluice history: payments into your credits, newest first

Usage: sluice history [--limit N] [--cursor TEXT]

Example:
  sluice history --key wallet.json --json
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
