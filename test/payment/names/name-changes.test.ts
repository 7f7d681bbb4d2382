/** Changes of names by whom they belong to: paid once, signed by the owner, refunded where they cannot be. */
import { randomUUID, sign } from 'node:crypto'
import t from 'tap'
import { encodeBase58 } from '../../../src/format/base58.js'
import { refuse } from '../../../src/format/refusal.js'
import { parseName } from '../../../src/names/name.js'
import { newEd25519Key } from '../../../src/proof/new-key.js'
import { someId } from '../../source/rig.js'
import type { PaymentRig } from '../rig.js'
import { type TestWallet, testWallets } from '../wallet-keys.js'
import { pay, type Shop, shop, sound, wincOf } from './name-shop.js'

const [arweave, , , ethereum] = testWallets() as [TestWallet, TestWallet, TestWallet, TestWallet]
const changeWinc = 160_000_000n

type Answer = Awaited<ReturnType<PaymentRig['post']>>

interface Owner {
  readonly address: string
  /** Headers with its signature of a message. */
  proof(...fields: string[]): Record<string, string>
  /** A prepared transaction with its signature in the second place. */
  signed(transaction: string): string
}

function solanaOwner(): Owner {
  const { publicKey: key, privateKey } = newEd25519Key()
  return {
    address: encodeBase58(key),
    proof: (...fields) => {
      const nonce = randomUUID()
      const message = Buffer.from(['arns', ...fields].join('\n') + nonce)
      return {
        'x-owner-nonce': nonce,
        'x-owner-public-key': key.toString('base64url'),
        'x-owner-signature': sign(null, message, privateKey).toString('base64url'),
        'x-owner-signature-type': '4',
      }
    },
    signed: (transaction) => {
      const bytes = Buffer.from(transaction, 'base64')
      sign(null, bytes.subarray(129), privateKey).copy(bytes, 65)
      return bytes.toString('base64')
    },
  }
}

interface Acting {
  act(action: string, body: object, headers?: object, nonce?: string): Promise<Answer>
  sign(nonce: string, transaction: string): Promise<Answer>
  held(): Promise<Record<string, unknown>>
  readonly antId: string
}

/** A shop with the name `mine`, which is the owner's, and credits of somebody who pays. */
async function scene(market: Shop, owner: Owner): Promise<Acting> {
  const { rig } = market
  const act: Acting['act'] = (action, body, headers = {}, nonce = randomUUID()) =>
    rig.post(`/v1/arns/actions/${action}`, JSON.stringify(body), { ...arweave.headers(nonce), ...headers })
  await pay(market, arweave.address)
  const lease = { name: 'mine', type: 'lease', years: 1, ownerAddress: owner.address }
  const { antId } = (await act('buy-name', lease)).json as { antId: string }
  return {
    act,
    antId,
    sign: (nonce, transaction) => rig.post(`/v1/arns/actions/${nonce}/sign`, JSON.stringify({ transaction })),
    held: async () => (await rig.get(`/v1/arns/held/${antId}`)).json as Record<string, unknown>,
  }
}

t.test('the owner signs a transaction; it is carried out and paid for once', async (t) => {
  const market = await shop(t)
  const { rig, says } = market
  const [owner, friend, heir] = [solanaOwner(), solanaOwner(), solanaOwner()]
  const { act, sign, held, antId } = await scene(market, owner)
  const body = { antId, ownerAddress: owner.address, target: friend.address }
  for (const action of ['add-controller', 'remove-controller', 'transfer', 'transfer-record'])
    t.match((await rig.get(`/v1/arns/actions/${action}/price`)).json, { wincQty: String(changeWinc) })
  t.equal((await rig.get('/v1/arns/actions/buy-name/price')).status, 400)
  t.equal((await act('add-controller', { ...body, ownerAddress: friend.address })).status, 403)
  t.equal((await act('add-controller', { ...body, target: 'nobody' })).status, 400)
  t.equal((await act('transfer', { ...body, target: undefined })).status, 400)
  t.equal((await act('add-controller', { ...body, antId: 'none' })).status, 404)

  const before = await wincOf(market, arweave.address)
  const nonce = randomUUID()
  const ordered = await act('add-controller', body, {}, nonce)
  t.equal(ordered.status, 202, ordered.text)
  t.match(ordered.json, { nonce, status: 'awaiting-signature', antId, expiresAt: /^2026-/ })
  t.strictSame((await act('add-controller', body, {}, nonce)).json, ordered.json, 'the same again')
  t.equal((await act('remove-controller', body, {}, nonce)).status, 400, 'one nonce, one change')
  t.match((await rig.get(`/v1/arns/actions/${nonce}`)).json, ordered.json as object)
  t.equal(before - (await wincOf(market, arweave.address)), changeWinc, 'held back')
  t.match(await held(), { owner: owner.address, controllers: [], isServiceController: true })
  const { transaction } = ordered.json as { transaction: string }
  const other = Buffer.from(transaction, 'base64')
  other[140] = (other[140] ?? 0) ^ 1
  // Of bytes, not of text: Base64 may end in padding, and what follows padding is not read.
  const longer = Buffer.concat([Buffer.from(transaction, 'base64'), Buffer.alloc(3)]).toString('base64')
  for (const wrong of [
    transaction,
    friend.signed(transaction),
    owner.signed(other.toString('base64')),
    '',
    '!',
    'A'.repeat(5000),
    owner.signed(longer),
  ])
    t.match(await sign(nonce, wrong), { status: 400, text: /Invalid transaction/ })
  t.equal((await rig.post(`/v1/arns/actions/${nonce}/sign`, '{}')).status, 400)
  t.equal((await sign(randomUUID(), transaction)).status, 404)
  const both = await Promise.all([1, 2].map(() => sign(nonce, owner.signed(transaction))))
  for (const one of both) t.match(one, { status: 200, json: { status: 'completed', antId } }, one.text)
  t.match(await sign(nonce, transaction), { status: 200, json: { alreadyCompleted: true } })
  t.equal(before - (await wincOf(market, arweave.address)), changeWinc, 'paid once')
  t.match(await held(), { controllers: [friend.address] })

  // A controller changes records, and nothing else.
  const [first, second] = [someId(), someId()]
  const record = { antId, undername: '@', transactionId: first, ttlSeconds: 60 }
  t.equal((await act('set-record', record, friend.proof('set-record', antId, '@', first, '60'))).status, 200)
  t.match(market.list.get(parseName('mine')!), { id: first })
  t.equal((await act('transfer', { ...body, ownerAddress: friend.address })).status, 403)

  // What is not signed in time is refunded, and cannot be signed afterwards.
  const late = (await act('transfer', { ...body, target: heir.address })).json as Record<string, string>
  rig.setTime(Date.parse(late.expiresAt ?? ''))
  const poor = await wincOf(market, arweave.address)
  const after = await Promise.all([
    sign(late.nonce ?? '', owner.signed(late.transaction ?? '')),
    rig.service.recheck(),
    sign(late.nonce ?? '', owner.signed(late.transaction ?? '')),
  ])
  t.match([after[0], after[2]], [{ status: 400, text: /not signed in time/ }, { status: 400 }])
  t.match((await rig.get(`/v1/arns/actions/${late.nonce}`)).json, { status: 'failed', failedDate: /^2026-/ })
  t.equal((await wincOf(market, arweave.address)) - poor, changeWinc)
  t.match(await held(), { owner: owner.address })

  // A registry that is silent when it is signed gets the order again.
  says.push(refuse('late', 'upstream', 'no answer'))
  const again = (await act('transfer', { ...body, target: heir.address })).json as Record<string, string>
  t.match(await sign(again.nonce ?? '', owner.signed(again.transaction ?? '')), {
    status: 202,
    json: { status: 'pending' },
  })
  await rig.service.recheck()
  t.match((await rig.get(`/v1/arns/actions/${again.nonce}`)).json, { status: 'completed' })
  t.match(await held(), { owner: heir.address, controllers: [], isServiceController: false })
  const namesOf = async (address: string): Promise<unknown> =>
    ((await rig.get(`/v1/arns/my-names/${address}`)).json as { names: object[] }).names
  t.strictSame(await namesOf(owner.address), [])
  t.match(await namesOf(heir.address), [{ name: 'mine', antId, type: 'lease', years: 1 }])

  // Whom the service does not work for signs its own changes of records, too.
  const move = { ...record, transactionId: second }
  t.equal((await act('set-record', move, owner.proof('set-record', antId, '@', second, '60'))).status, 403)
  const waits = await act('set-record', move, heir.proof('set-record', antId, '@', second, '60'))
  t.match(waits.json, { status: 'awaiting-signature' }, waits.text)
  t.match(market.list.get(parseName('mine')!), { id: first })
  const { nonce: moving = '', transaction: prepared = '' } = waits.json as Record<string, string>
  t.equal((await sign(moving, heir.signed(prepared))).status, 200)
  t.match(market.list.get(parseName('mine')!), { id: second })
  await sound(t, market)
})

t.test('a record has metadata and an owner of its own', async (t) => {
  const market = await shop(t)
  const [owner, tenant] = [solanaOwner(), solanaOwner()]
  const { act, held, antId } = await scene(market, owner)
  const [first, second, logo] = [someId(), someId(), someId()]
  const docs = { antId, undername: 'Docs' }
  const point = (by: Owner, id: string) =>
    act(
      'set-record',
      { ...docs, transactionId: id, ttlSeconds: 60 },
      by.proof('set-record', antId, 'Docs', id, '60'),
    )
  const none = '\0'
  const metadata = { displayName: 'Docs', recordLogo: logo, recordKeywords: ['a', 'b'] }
  const proofOfMetadata = () =>
    owner.proof('set-record-metadata', antId, 'Docs', 'Docs', logo, none, 'a\u0001b')
  const before = await wincOf(market, arweave.address)
  t.match(await act('set-record-metadata', { ...docs, ...metadata }, proofOfMetadata()), {
    status: 400,
    text: /There is no record 'docs': the credits were refunded/,
  })
  t.equal(await wincOf(market, arweave.address), before)
  t.equal((await point(owner, first)).status, 200, 'as it was spelled when it was signed')
  t.equal(
    (await act('set-record-metadata', { ...docs, ...metadata, displayName: 'X' }, proofOfMetadata())).status,
    403,
  )
  for (const wrong of [
    { displayName: 'a\nb' },
    { displayName: 'x'.repeat(62) },
    { recordLogo: 'x' },
    {},
    { recordKeywords: 'a' },
    { recordKeywords: ['a\u0001b'] },
    { recordDescription: 7 },
  ])
    t.equal((await act('set-record-metadata', { ...docs, ...wrong }, proofOfMetadata())).status, 400)
  t.equal((await act('set-record-metadata', { ...docs, ...metadata }, proofOfMetadata())).status, 200)
  t.strictSame((await held()).records, [
    { undername: 'docs', transactionId: first, ttlSeconds: 60, ...metadata },
  ])
  const cleared = { ...docs, displayName: null, recordDescription: '' }
  const proof = owner.proof('set-record-metadata', antId, 'Docs', none, none, '', none)
  t.equal((await act('set-record-metadata', cleared, proof)).status, 200)
  const kept = { recordLogo: logo, recordKeywords: ['a', 'b'], recordDescription: '' }
  t.strictSame((await held()).records, [{ undername: 'docs', transactionId: first, ttlSeconds: 60, ...kept }])

  t.equal((await point(tenant, second)).status, 403)
  const give = { ...docs, target: tenant.address }
  const given = owner.proof('transfer-record', antId, 'Docs', tenant.address)
  t.equal((await act('transfer-record', { ...give, undername: '@' }, given)).status, 400)
  t.equal((await act('transfer-record', { ...give, target: ethereum.address }, given)).status, 403)
  t.equal((await act('transfer-record', give, given)).status, 200)
  t.match(await held(), { records: [{ owner: tenant.address, recordLogo: logo }] })
  t.equal((await point(tenant, second)).status, 200)
  t.match(market.list.get(parseName('docs_mine')!), { id: second })
  const apex = { antId, undername: '@', transactionId: second, ttlSeconds: 60 }
  const notIts = tenant.proof('set-record', antId, '@', second, '60')
  t.equal((await act('set-record', apex, notIts)).status, 403, 'that one record only')
  t.equal((await act('remove-record', docs, tenant.proof('remove-record', antId, 'Docs'))).status, 403)
  const gone = () => tenant.proof('remove-record-metadata', antId, 'Docs')
  t.equal((await act('remove-record-metadata', docs, gone())).status, 200)
  t.match(await act('remove-record-metadata', docs, gone()), { status: 400, text: /refunded/ })
  t.strictSame((await held()).records, [
    { undername: 'docs', transactionId: second, ttlSeconds: 60, owner: tenant.address },
  ])
  t.equal((await act('remove-record', docs, owner.proof('remove-record', antId, 'Docs'))).status, 200)
  t.equal((await point(owner, first)).status, 200)
  t.strictSame((await held()).records, [{ undername: 'docs', transactionId: first, ttlSeconds: 60 }])
  await sound(t, market)
})
