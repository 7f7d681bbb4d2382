/** Keys that anybody makes up leave nothing in the ledger; keys with money are learnt. */
import t from 'tap'
import { accountOf } from '../../src/payment/books/wallets.js'
import { sha256 } from '../../src/proof/digest.js'
import { paymentRig } from './rig.js'
import { testWallets } from './wallet-keys.js'

t.test('a request that is signed by an unknown key writes nothing', async (t) => {
  const rig = await paymentRig(t)
  const wallet = testWallets().find(({ signatureType }) => signatureType === 4)
  if (wallet === undefined) throw new Error('there is no such wallet')
  const headers = wallet.headers('a nonce')
  const rows = async (): Promise<number> =>
    (await rig.ledger.records('alias', '', '', 10)).length +
    (await rig.ledger.records('wallet-aliases', '', '', 10)).length
  for (const path of ['/v1/balance', '/v1/account/payments']) await rig.get(path, headers)
  t.equal(await rows(), 0)
  const alias = Buffer.from(sha256(Buffer.from(headers['x-public-key'] ?? '', 'base64url'))).toString(
    'base64url',
  )
  await rig.ledger.commit({
    transfers: [
      {
        id: 'sent',
        kind: 'posted',
        debit: 'source:test',
        credit: accountOf(alias),
        amount: 7n,
        reason: 'payment',
        reference: 'r',
      },
    ],
  })
  t.match(
    await rig.get('/v1/balance', headers),
    { status: 200, json: { winc: '7' } },
    'sent to its other address',
  )
  t.equal(await rows(), 2)
  t.equal((await rig.service.balanceOf(wallet.address))?.winc, '7')
})
