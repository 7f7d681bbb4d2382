/** Names for credits, by the library of the network, unmodified: what was bought is what the gateway serves. */
import t from 'tap'
import { encodeBase58 } from '../../src/format/base58.js'
import { newEd25519Key } from '../../src/proof/new-key.js'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { askAt } from '../gateway/rig.js'
import { someId } from '../source/rig.js'
import { run } from './running.js'
import { withoutTurbo as skip, turboLibrary } from './turbo.js'

interface Price {
  readonly winc: string
  readonly mARIO: string
  readonly wincTotal: string
}

interface Done {
  readonly status: string
  readonly nonce: string
  readonly antId: string
  readonly messageId: string
}

/** What of the library is used; it is too large to be a dependency for its types. */
interface Signed {
  getBalance(): Promise<{ winc: string }>
  getArNSPriceForName(given: object): Promise<Price>
  getArNSActionPrice(action: string): Promise<{ wincQty: string }>
  buyArNSName(given: object): Promise<Done>
  setArNSRecord(given: object): Promise<Done>
  removeArNSRecord(given: object): Promise<Done>
  setArNSRecordMetadata(given: object): Promise<Done>
  removeArNSRecordMetadata(given: object): Promise<Done>
  transferArNSRecord(given: object): Promise<Done>
  addArNSController(given: object): Promise<Done>
  removeArNSController(given: object): Promise<Done>
  transferArNSAnt(given: object): Promise<Done>
  extendArNSLease(given: object): Promise<Done>
  upgradeArNSName(given: object): Promise<Done>
  increaseArNSUndernameLimit(given: object): Promise<Done>
  getArNSActionStatus(nonce: string): Promise<Done>
  getArNSPurchaseStatus(given: { nonce: string }): Promise<{ wincQty: string; status: string }>
  getArNSNames(): Promise<{ names: object[] }>
  getArNSFiatPurchaseQuote(
    given: object,
  ): Promise<{ purchaseQuote: { nonce: string }; paymentSession: { url: string } }>
  createCheckoutSession(given: object): Promise<{ url: string }>
}

interface Turbo {
  readonly TurboFactory: { authenticated(given: object): Signed }
  readonly ArweaveSigner: new (jwk: object) => object
  readonly solanaOwnerSigner: (secret: Uint8Array) => object
  USD(amount: number): unknown
}

t.test(
  'a name is bought, pointed at content, extended and upgraded, with credits and by card',
  { skip },
  async (t) => {
    const { TurboFactory, ArweaveSigner, solanaOwnerSigner, USD } = await turboLibrary<Turbo>()
    const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false', SERVICES: 'gateway,payment' })
    const { payment = '', gateway = '', devnet = '' } = urls
    const services = { paymentServiceConfig: { url: payment }, gatewayUrl: gateway, token: 'arweave' }
    const wallet = knownWallet()
    const address = await clientOf(devnet).wallets.jwkToAddress(wallet)
    const turbo = TurboFactory.authenticated({ ...services, signer: new ArweaveSigner(wallet) })
    const charge = (url: string): Promise<Response> =>
      fetch(url, { method: 'POST', body: new URLSearchParams({ card: '4242424242424242' }) })
    const resolved = async (name: string): Promise<unknown> =>
      (await askAt(gateway, '/', 'HEAD', { host: `${name}.localhost` })).headers['x-ns-resolved-id']
    const comes = async (name: string, id: string): Promise<void> => {
      t.ok(
        await eventually('the name means the new target', async () => (await resolved(name)) === id),
        `${name} means ${id}`,
      )
    }
    const solanaWallet = (): { owner: object; address: string } => {
      const keys = newEd25519Key().privateKey.export({ format: 'jwk' })
      const [d, x] = [Buffer.from(keys.d ?? '', 'base64url'), Buffer.from(keys.x ?? '', 'base64url')]
      return { owner: solanaOwnerSigner(Buffer.concat([d, x])), address: encodeBase58(x) }
    }
    const { owner, address: ownerAddress } = solanaWallet()

    const lease = { name: 'example', type: 'lease', years: 1 } as const
    const price = await turbo.getArNSPriceForName({ intent: 'Buy-Name', ...lease })
    t.match(price, { winc: '3840000000001', mARIO: '1200000000', wincTotal: '3840000000001' })
    await t.rejects(turbo.buyArNSName({ ...lease, owner }), /Insufficient/)
    await charge((await turbo.createCheckoutSession({ amount: USD(1000), owner: address })).url)
    const before = BigInt((await turbo.getBalance()).winc)
    const bought = await turbo.buyArNSName({ ...lease, owner })
    t.match(bought, { status: 'completed', antId: /^.{43}$/, messageId: /^.{43}$/ })
    t.equal(before - BigInt((await turbo.getBalance()).winc), BigInt(price.winc))
    t.match(await turbo.getArNSActionStatus(bought.nonce), {
      status: 'completed',
      messageId: bought.messageId,
    })
    t.match(await turbo.getArNSPurchaseStatus({ nonce: bought.nonce }), {
      wincQty: price.winc,
      status: 'success',
    })
    await t.rejects(turbo.buyArNSName({ ...lease, owner }), /already registered/)

    const { antId } = bought
    const [first, under, second] = [someId(), someId(), someId()]
    t.match(await turbo.getArNSActionPrice('set-record'), { wincQty: /^[1-9]\d*$/ })
    await turbo.setArNSRecord({ antId, owner, transactionId: first })
    await comes('example', first)
    await turbo.setArNSRecord({ antId, owner, transactionId: under, undername: 'docs', ttlSeconds: 60 })
    await comes('docs_example', under)
    await turbo.setArNSRecord({ antId, owner, transactionId: second })
    await comes('example', second)
    await turbo.removeArNSRecord({ antId, owner, undername: 'docs' })
    t.ok(
      await eventually('the name means nothing', async () => (await resolved('docs_example')) === undefined),
    )
    await turbo.extendArNSLease({ name: 'example', years: 2 })
    await turbo.increaseArNSUndernameLimit({ name: 'example', increaseQty: 3 })
    await turbo.upgradeArNSName({ name: 'example' })
    await t.rejects(turbo.extendArNSLease({ name: 'example', years: 1 }), /permanent/)
    t.match((await fetch(`${payment}/v1/arns/my-names/${ownerAddress}`)).status, 200)

    // The other changes; those of the whole name are transactions that the owner's wallet signs.
    const held = async (): Promise<unknown> => (await fetch(`${payment}/v1/arns/held/${antId}`)).json()
    const [friend, heir] = [solanaWallet(), solanaWallet()]
    const logo = someId()
    await turbo.setArNSRecord({ antId, owner, transactionId: under, undername: 'docs' })
    const place = { antId, undername: 'docs' }
    const paidSoFar = BigInt((await turbo.getBalance()).winc)
    await turbo.setArNSRecordMetadata({
      ...place,
      owner,
      displayName: 'Documents',
      recordLogo: logo,
      recordDescription: null,
      recordKeywords: ['paper', 'text'],
    })
    const metadata = { displayName: 'Documents', recordLogo: logo, recordKeywords: ['paper', 'text'] }
    t.match(await held(), { records: [{ undername: 'docs', ...metadata }, { undername: '@' }] })
    await turbo.removeArNSRecordMetadata({ ...place, owner })
    await turbo.transferArNSRecord({ ...place, owner, target: friend.address })
    t.match(await held(), { records: [{ undername: 'docs', owner: friend.address }, {}] })
    t.match(await turbo.addArNSController({ antId, owner, target: friend.address }), {
      status: 'completed',
      antId,
    })
    await turbo.removeArNSController({ antId, owner })
    t.match(await held(), { controllers: [friend.address], isServiceController: false })
    // Without the service as a controller, the same call signs a transaction.
    await turbo.setArNSRecord({ antId, owner, transactionId: first })
    await turbo.addArNSController({ antId, owner })
    await comes('example', first)
    t.match(await turbo.transferArNSAnt({ antId, owner, target: heir.address }), { status: 'completed' })
    await t.rejects(turbo.transferArNSAnt({ antId, owner, target: heir.address }), /owner/)
    t.match(await held(), { owner: heir.address, controllers: [] })
    const { wincQty } = await turbo.getArNSActionPrice('transfer')
    t.equal(paidSoFar - BigInt((await turbo.getBalance()).winc), BigInt(wincQty) * 8n, 'eight changes')

    const quote = await turbo.getArNSFiatPurchaseQuote({
      intent: 'Buy-Name',
      name: 'bycard',
      type: 'permabuy',
      processId: first,
      currency: 'usd',
      method: 'checkout-session',
      uiMode: 'hosted',
    })
    t.equal((await charge(quote.paymentSession.url)).status, 200)
    t.match(await turbo.getArNSPurchaseStatus({ nonce: quote.purchaseQuote.nonce }), { status: 'success' })
    await comes('bycard', first)
    // Who pays for a name of somebody else does not own it.
    const { names } = await turbo.getArNSNames()
    t.match(names, [{ name: 'bycard', type: 'permabuy' }])
    t.equal(names.length, 1)
    t.match(await (await fetch(`${payment}/v1/arns/my-names/${heir.address}`)).json(), {
      names: [{ name: 'example', type: 'permabuy', antId }],
    })
  },
)
