/** Words that mean the same in any letter case or form are answered alike, and those that do not are kept apart. */
import t from 'tap'
import { accountOf } from '../../src/payment/books/wallets.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { paymentRig, secret } from './rig.js'

const hex = '52908400098527886e0f7030069857d2e4169ee7'
const checksummed = '0x52908400098527886E0F7030069857D2E4169EE7'
const arweave = 'AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOpQ'
const start = Date.UTC(2026, 0, 1)

t.test('words, addresses and schemes in each form', async (t) => {
  const rig = await paymentRig(t, { addresses: { arweave } })
  for (const address of [checksummed, arweave])
    await rig.ledger.commit({
      transfers: [
        {
          id: address,
          kind: 'posted',
          debit: 'source:test',
          credit: accountOf(address),
          amount: 7n,
          reason: 'payment',
          reference: 'r',
        },
      ],
    })

  const alike: readonly (readonly string[])[] = [
    ['/v1/price/usd/1000', '/v1/price/USD/1000', '/v1/Price/Usd/1000'],
    ['/v1/price/arweave/1000', '/v1/price/ARWEAVE/1000', '/v1/price/Arweave/1000'],
    ['/v1/price/base-usdc/1000', '/v1/price/Base-USDC/1000'],
    ['/v1/rates/usd', '/v1/rates/USD'],
    ['/v1/price/xyz/1000', '/v1/price/xyz/1000'],
    [
      `/v1/account/balance?address=${checksummed}`,
      `/v1/account/balance?address=0x${hex}`,
      `/v1/account/balance?address=0x${hex.toUpperCase()}`,
      `/v1/account/balance?address=0X${hex.toUpperCase()}`,
      `/v1/account/balance/ethereum?address=0x${hex}`,
      `/v1/account/balance/Ethereum?address=0x${hex}`,
    ],
    [
      `/v1/account/approvals/get?userAddress=${checksummed}`,
      `/v1/account/approvals/get?userAddress=0X${hex.toUpperCase()}`,
    ],
  ]
  for (const [first = '', ...others] of alike) {
    const { status, json, text } = await rig.get(first)
    for (const other of others)
      t.match(await rig.get(other), { status, ...(json ? { json } : { text }) }, other)
  }
  t.match((await rig.get(`/v1/account/balance?address=0x${hex}`)).json, { winc: '7' })
  t.match((await rig.get(`/v1/account/balance?address=${arweave}`)).json, { winc: '7' })
  const lower = await rig.get(`/v1/account/balance?address=${arweave.toLowerCase()}`)
  t.notMatch(lower.json ?? {}, { winc: '7' }, 'base64url has a case')

  const sale = async (address: string, currency: string): Promise<unknown> =>
    (await rig.get(`/v1/top-up/checkout-session/${address}/${currency}/1000`)).json
  for (const [address, currency] of [
    [`0x${hex}`, 'usd'],
    [`0X${hex.toUpperCase()}`, 'USD'],
  ] as const)
    t.match(await sale(address, currency), {
      topUpQuote: { destinationAddress: checksummed, currencyType: 'usd' },
    })

  const token = await makeServiceToken(secret, start)
  for (const [scheme, status] of [
    ['Bearer', 200],
    ['bearer', 200],
    ['BEARER', 200],
    ['Basic', 401],
  ] as const) {
    const headers = { authorization: `${scheme} ${token}` }
    t.equal((await rig.get('/v1/price-of-item?byteCount=1000', headers)).status, status, scheme)
  }
})
