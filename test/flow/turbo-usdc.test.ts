/** Uploads and top-ups in USDC on a local chain, as clients of the network do them: their own libraries, unmodified. */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { ethereumSigner, signItem } from '../../src/proof/sign.js'
import { anvilPath, startChain } from '../admission/anvil.js'
import { stockFacilitator } from '../admission/stock-facilitator.js'
import { eventually } from '../eventually.js'
import { run } from './running.js'
import { largeFile, turboLibrary, withoutTurbo } from './turbo.js'

const modules = new URL('../../../test/clients/node_modules/', import.meta.url)
const fetchLibrary = fileURLToPath(new URL('x402-fetch/dist/esm/index.mjs', modules))
const binary = anvilPath()
const skip = withoutTurbo || (binary === undefined && 'anvil is not installed')

interface Uploaded {
  readonly id: string
  readonly winc: string
}

interface Turbo {
  uploadFile(given: object): Promise<Uploaded>
  uploadRawX402Data(given: object): Promise<Uploaded>
}

interface TurboLibrary {
  readonly TurboFactory: { authenticated(given: object): Turbo; unauthenticated(given: object): Turbo }
  readonly EthereumSigner: new (key: string) => unknown
  readonly X402Funding: new (given: object) => unknown
}

interface FetchLibrary {
  wrapFetchWithPayment(by: typeof fetch, signer: unknown, most?: bigint): typeof fetch
  createSigner(network: string, key: string): Promise<unknown>
}

const secret = 'a-secret-of-two-services'

t.test('clients pay for uploads and top-ups in USDC', { skip }, async (t) => {
  const chain = await startChain(t, binary ?? '', 'base')
  const facilitator = await stockFacilitator(t, chain, await chain.account({ ether: 10n ** 19n }))
  const payee = (await chain.account()).address
  const folder = t.testdir()
  const { urls } = await run(t, folder, {
    DEVNET_SEED: 'false',
    UPLOAD_FREE_ITEM_BYTES: '3000',
    PRIVATE_ROUTE_SECRET: secret,
    X_402_USDC_NETWORK: 'base',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_RPC_URL: chain.url,
    PAYMENT_BASE_CONFIRMATIONS: '1',
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
  })
  const { upload = '', payment = '', gateway = '' } = urls
  const key = generatePrivateKey()
  await chain.account({ key, units: 50_000_000n })
  const { address } = privateKeyToAccount(key)
  const served = async (id: string): Promise<Buffer> =>
    Buffer.from(await (await fetch(`${gateway}/raw/${id}`)).arrayBuffer())
  const settled = (): number => facilitator.calls.filter((call) => call === 'settle').length

  const { TurboFactory, EthereumSigner, X402Funding } = await turboLibrary<TurboLibrary>()
  const places = { uploadServiceConfig: { url: upload }, paymentServiceConfig: { url: payment } }
  const turbo = TurboFactory.authenticated({
    ...places,
    token: 'base-usdc',
    signer: new EthereumSigner(key.slice(2)),
  })
  const maxMUSDCAmount = 20_000_000

  await t.test('raw bytes, small ones for nothing', async (t) => {
    const nobody = TurboFactory.unauthenticated({ ...places, token: 'base-usdc' })
    const free = await nobody.uploadRawX402Data({ data: 'small' })
    t.equal((await served(free.id)).toString(), 'small')
    t.equal(free.winc, '0')
    const data = randomBytes(200_000)
    const tags = [{ name: 'Content-Type', value: 'image/png' }]
    const before = await chain.balance(payee)
    const paid = await turbo.uploadRawX402Data({ data, tags, maxMUSDCAmount })
    t.ok((await served(paid.id)).equals(data))
    t.ok((await chain.balance(payee)) > before)
    t.equal((await fetch(`${gateway}/raw/${paid.id}`)).headers.get('content-type'), 'image/png')
    t.equal(settled(), 1)
  })

  await t.test('a signed item in parts, paid at its beginning', async (t) => {
    const { bytes, factories } = largeFile(folder, 11_500_000)
    const file = await turbo.uploadFile({
      ...factories,
      fundingMode: new X402Funding({ maxMUSDCAmount }),
    })
    t.ok((await served(file.id)).equals(bytes))
    t.ok(BigInt(file.winc) > 0n)
    t.equal(settled(), 2)
  })

  const { wrapFetchWithPayment, createSigner } = (await import(fetchLibrary)) as FetchLibrary
  const paying = wrapFetchWithPayment(fetch, await createSigner('base', key), BigInt(maxMUSDCAmount))
  const signed = (text: string, size: number): Uint8Array =>
    signItem(ethereumSigner(Buffer.from(key.slice(2), 'hex')), {}, Buffer.alloc(size, text))

  await t.test('a signed item by a client that only knows x402', async (t) => {
    const item = signed('by x402-fetch', 300_000)
    const answer = await paying(`${upload}/v1/x402/upload/signed`, { method: 'POST', body: item })
    t.equal(answer.status, 200)
    const { id } = (await answer.json()) as Uploaded
    t.ok((await served(id)).equals(Buffer.from(item.subarray(item.length - 300_000))))
    t.ok(answer.headers.get('x-payment-response'))
    t.equal(settled(), 3)
  })

  await t.test('a top-up', async (t) => {
    const answer = await paying(`${payment}/v1/x402/top-up/ethereum/${address}`, {
      method: 'POST',
      body: JSON.stringify({ bytes: 2_000_000 }),
    })
    t.equal(answer.status, 200)
    const { creditsGranted, balance } = (await answer.json()) as Record<string, string>
    t.equal(balance, creditsGranted)
    const item = signed('with credits', 1_900_000)
    const paid = await fetch(`${upload}/v1/tx`, { method: 'POST', body: item })
    t.equal(paid.status, 200)
    const { winc } = (await paid.json()) as Uploaded
    await eventually('the charge is booked', async () => {
      const balanceAnswer = await fetch(`${payment}/v1/account/balance/ethereum?address=${address}`)
      const left = ((await balanceAnswer.json()) as { winc: string }).winc
      return BigInt(left) === BigInt(creditsGranted ?? 0) - BigInt(winc)
    })
  })
})

t.test(
  'a program as it is started takes USDC of a chain that is its own',
  { skip: withoutTurbo },
  async (t) => {
    const folder = t.testdir()
    const { urls } = await run(t, folder, { DEVNET_SEED: 'false' })
    const { upload = '', payment = '', gateway = '' } = urls
    const { TurboFactory, EthereumSigner, X402Funding } = await turboLibrary<TurboLibrary>()
    const turbo = TurboFactory.authenticated({
      uploadServiceConfig: { url: upload },
      paymentServiceConfig: { url: payment },
      token: 'base-usdc',
      signer: new EthereumSigner(generatePrivateKey().slice(2)),
    })
    const maxMUSDCAmount = 20_000_000
    const served = async (id: string): Promise<Buffer> =>
      Buffer.from(await (await fetch(`${gateway}/raw/${id}`)).arrayBuffer())
    const data = randomBytes(300_000)
    const raw = await turbo.uploadRawX402Data({ data, maxMUSDCAmount })
    t.ok((await served(raw.id)).equals(data))
    t.ok(BigInt(raw.winc) > 0n)
    const { bytes, factories } = largeFile(folder, 11_000_000)
    const file = await turbo.uploadFile({
      ...factories,
      fundingMode: new X402Funding({ maxMUSDCAmount }),
    })
    t.ok((await served(file.id)).equals(bytes))
  },
)
