/** What the own suite of the network's library asks of both services, by that library, unmodified: case by case, in our words. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { createReadStream, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { createData } from 'arbundles'
import t, { type Test } from 'tap'
import { encodeBase58 } from '../../src/format/base58.js'
import { ed25519Key } from '../../src/proof/sign.js'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { isSigned, type Receipt } from './receipts.js'
import { run } from './running.js'
import { quickTransfers, withoutTurbo as skip, turboLibrary } from './turbo.js'

interface Balance {
  readonly winc: string
  readonly controlledWinc: string
  readonly effectiveBalance: string
  readonly givenApprovals: readonly object[]
  readonly receivedApprovals: readonly object[]
}

interface Manifest {
  readonly index: { readonly path: string }
  readonly fallback?: { readonly id: string }
  readonly paths: Readonly<Record<string, { readonly id: string }>>
}

interface Approval {
  readonly approvalDataItemId: string
  readonly payingAddress: string
}

type Ask<Answered> = (given: object) => Promise<Answered>

/** What of the library is used; it is too large to be a dependency for its types. */
interface Turbo {
  readonly signer: { getPublicKey(): Promise<Buffer>; getNativeAddress(): Promise<string> }
  readonly getFiatRates: () => Promise<object>
  readonly getTurboCryptoWallets: () => Promise<Record<string, string>>
  readonly getSupportedCurrencies: () => Promise<object>
  readonly getFiatEstimateForBytes: Ask<{ amount: number; byteCount: number }>
  readonly getTokenPriceForBytes: Ask<{ tokenPrice: string; byteCount: number }>
  readonly getWincForFiat: Ask<object>
  readonly createCheckoutSession: Ask<Record<string, unknown>>
  readonly createPaymentIntent: Ask<object>
  readonly getBalance: (address?: string) => Promise<Balance>
  readonly submitFundTransaction: Ask<object>
  readonly topUpWithTokens: Ask<{ id: string }>
  readonly upload: Ask<Receipt>
  readonly uploadFile: Ask<Receipt>
  readonly uploadSignedDataItem: Ask<Receipt>
  readonly uploadFolder: Ask<{ fileResponses: Receipt[]; manifest: Manifest; manifestResponse: Receipt }>
  readonly shareCredits: Ask<Approval>
  readonly revokeCredits: Ask<Approval[]>
  readonly getCreditShareApprovals: (given?: object) => Promise<{ givenApprovals: Approval[] }>
}

interface Library {
  readonly TurboFactory: { authenticated(given: object): Turbo; unauthenticated(given: object): Turbo }
  readonly EthereumSigner: new (key: string) => Parameters<typeof createData>[1]
  readonly ArweaveSigner: new (jwk: object) => Parameters<typeof createData>[1]
  USD(amount: number): object
  JPY(amount: number): object
}

const fiats = ['usd', 'eur', 'gbp', 'cad', 'aud', 'jpy', 'inr', 'sgd', 'hkd', 'brl']
const tokens = 'arweave ario solana ethereum kyve matic pol base-eth usdc base-usdc polygon-usdc'.split(' ')
const somebody = '43-character-stub-arweave-address-000000000'
const cards = { owner: somebody }
const hundredMib = 100 * 2 ** 20
const mib = 2 ** 20
const settings = {
  DEVNET_BLOCK_MS: '0',
  PAYMENT_ARWEAVE_CONFIRMATIONS: '10',
  PAYMENT_RECHECK_SECONDS: '1',
  PAYMENT_ETHEREUM_ADDRESS: `0x${'11'.repeat(20)}`,
  PAYMENT_SOLANA_ADDRESS: encodeBase58(Buffer.alloc(32, 5)),
  // No payment on these chains is looked at here.
  PAYMENT_ETHEREUM_RPC_URL: 'http://127.0.0.1:9',
  PAYMENT_SOLANA_RPC_URL: 'http://127.0.0.1:9',
  PAYMENT_KYVE_API_URL: 'http://127.0.0.1:9',
  PAYMENT_KYVE_ADDRESS: 'kyve1zg69v7yszg69v7yszg69v7yszg69v7ysy5sdm0',
}

/** How often the library told each kind of event of an upload. */
function listened() {
  const reported = new Map<string, number>()
  const names = ['Progress', 'Error', 'Success'].flatMap((what) =>
    ['', 'Upload', 'Signing'].map((part) => `on${part}${what}`),
  )
  const events = Object.fromEntries(
    names.map((name) => [name, () => void reported.set(name, (reported.get(name) ?? 0) + 1)]),
  )
  return { events, reported: () => names.filter((name) => reported.has(name)) }
}
const ofUpload = ['onProgress', 'onUploadProgress', 'onSuccess', 'onUploadSuccess']
const ofBoth = [
  'onProgress',
  'onUploadProgress',
  'onSigningProgress',
  'onSuccess',
  'onUploadSuccess',
  'onSigningSuccess',
]

t.test("the cases of the library's own suite", { skip }, async (t) => {
  const folder = t.testdir()
  const { TurboFactory, EthereumSigner, ArweaveSigner, USD, JPY } = await turboLibrary<Library>()
  const { urls } = await run(t, folder, settings)
  const { payment = '', upload = '', devnet = '', gateway = '' } = urls
  const services = {
    paymentServiceConfig: { url: payment },
    uploadServiceConfig: { url: upload },
    gatewayUrl: gateway,
  }
  const tokenTools = await quickTransfers(gateway)
  const wallet = knownWallet()
  const nobody = TurboFactory.unauthenticated({ ...services, token: 'arweave' })
  const turbo = TurboFactory.authenticated({ ...services, privateKey: wallet, tokenTools })
  const fresh = (): Turbo =>
    TurboFactory.authenticated({
      ...services,
      token: 'ethereum',
      signer: new EthereumSigner(randomBytes(32).toString('hex')),
    })
  const client = clientOf(devnet)
  const address = await client.wallets.jwkToAddress(wallet)
  const mine = (blocks: number): Promise<Response> => fetch(`${devnet}/mine/${blocks}`)
  /** A transfer to the payment service, not mined. */
  const sent = async (winston: number): Promise<string> => {
    const target = (await nobody.getTurboCryptoWallets()).arweave ?? ''
    const transaction = await client.createTransaction({ target, quantity: String(winston) }, wallet)
    await client.transactions.sign(transaction, wallet)
    await client.transactions.post(transaction)
    return transaction.id
  }
  await fetch(`${devnet}/mint/${address}/${10n ** 18n}`)

  await t.test('prices, in all currencies and tokens', async (t) => {
    t.match(await nobody.getFiatRates(), { winc: /^\d+$/, fiat: { usd: Number }, adjustments: Array })
    t.match(await nobody.getSupportedCurrencies(), {
      limits: {
        usd: {
          minimumPaymentAmount: Number,
          maximumPaymentAmount: Number,
          suggestedPaymentAmounts: Array,
          zeroDecimalCurrency: Boolean,
        },
      },
    })
    const addresses = await nobody.getTurboCryptoWallets()
    for (const token of ['arweave', 'ethereum', 'solana', 'kyve']) t.ok(addresses[token], token)
    for (const currency of fiats) {
      const { amount, byteCount } = await nobody.getFiatEstimateForBytes({ byteCount: hundredMib, currency })
      t.ok(amount > 0 && byteCount === hundredMib, `${currency}: ${amount}`)
    }
    for (const token of tokens) {
      const of = TurboFactory.unauthenticated({ ...services, token })
      const { tokenPrice, byteCount } = await of.getTokenPriceForBytes({ byteCount: hundredMib })
      t.ok(Number(tokenPrice) > 0 && byteCount === hundredMib, `${token}: ${tokenPrice}`)
    }
    t.match(await nobody.getWincForFiat({ amount: JPY(1500) }), { winc: /^[1-9]/, quotedPaymentAmount: 1500 })
  })

  await t.test('cards: sessions of each kind, and what is refused', async (t) => {
    const [ten, twenty] = [USD(10), USD(20)]
    const session = { adjustments: [], winc: /^\d+$/, id: String }
    const plain = await nobody.createCheckoutSession({ amount: ten, ...cards })
    t.match(plain, { ...session, paymentAmount: 1000, quotedPaymentAmount: 1000, url: /^http/ })
    t.equal(plain.client_secret, undefined)
    const places = { successUrl: 'https://example.com/success', cancelUrl: 'https://example.com/cancel' }
    const hosted = await nobody.createCheckoutSession({
      amount: twenty,
      ...cards,
      uiMode: 'hosted',
      ...places,
    })
    t.match(hosted, { ...session, paymentAmount: 2000, url: /^http/ })
    t.equal(hosted.client_secret, undefined)
    const back = { uiMode: 'embedded', returnUrl: 'https://example.com/return' }
    t.match(await nobody.createCheckoutSession({ amount: twenty, ...cards, ...back }), {
      ...session,
      paymentAmount: 2000,
      client_secret: String,
    })
    t.match(await nobody.createPaymentIntent({ amount: ten, ...cards }), {
      id: String,
      client_secret: String,
      winc: /^\d+$/,
    })
    const bad = { amount: ten, promoCodes: ['BAD_PROMO_CODE'] }
    const message = "Failed request (Status 400): No promo code found with code 'BAD_PROMO_CODE'"
    await t.rejects(turbo.getWincForFiat(bad), { message })
    await t.rejects(turbo.createCheckoutSession({ ...bad, owner: address }), { message })
    await t.rejects(nobody.getWincForFiat({ amount: USD(1) }), /Status 400/)
    await t.rejects(nobody.getWincForFiat({ amount: USD(1_000_000) }), /Status 400/)
  })

  await t.test('payments from the chain: unknown, pending, confirmed, and for another wallet', async (t) => {
    t.match(await fresh().getBalance(), { winc: '0' }, 'a wallet that nobody knows')
    const none = nobody.submitFundTransaction({ txId: 'non-existent-payment-tx-id' })
    await t.rejects(none, /Failed request \(Status 404\): Transaction not found/)
    const reported = { owner: address, token: 'arweave', winc: '766' }
    const txId = await sent(1000)
    t.match(await nobody.submitFundTransaction({ txId }), { id: txId, status: 'pending', ...reported })
    await mine(11)
    const second = await sent(1000)
    await mine(11)
    t.match(await nobody.submitFundTransaction({ txId: second }), { status: 'confirmed', ...reported })
    const all = await sent(10 ** 15)
    await mine(11)
    await nobody.submitFundTransaction({ txId: all })
    t.ok(
      await eventually(
        'the top-up is credited',
        async () => BigInt((await turbo.getBalance()).winc) > 7n * 10n ** 14n,
      ),
    )
  })

  const options: readonly object[] = [
    { target: '43charactersAbcdEfghIjklMnopQrstUvwxYz12345', anchor: 'anchorMustBeThirtyTwoBytesLong!!' },
    {
      target: 'WeirdCharacters-_!felwfleowpfl12345678901234',
      anchor: 'anchor-MusTBe__-__TwoBytesLong!!',
      tags: ['test', 'test2'].map((name) => ({ name, value: name })),
    },
    { tags: [{ name: '', value: '' }] },
  ]
  const owned = async (t: Test, receipt: Receipt, of: Turbo): Promise<void> => {
    t.ok(isSigned(receipt))
    t.match(receipt, { fastFinalityIndexes: Array, dataCaches: Array })
    t.equal(
      receipt.owner,
      createHash('sha256')
        .update(await of.signer.getPublicKey())
        .digest('base64url'),
    )
  }

  await t.test('data of each kind, with events, targets, anchors and tags', async (t) => {
    const text = Buffer.from('a test string')
    const kinds = [
      () => 'a test string',
      () => text,
      () => new Uint8Array(text),
      () => text.buffer.slice(text.byteOffset, text.byteOffset + text.length),
    ]
    for (const data of kinds)
      for (const dataItemOpts of options) {
        const { events, reported } = listened()
        await owned(
          t,
          await turbo.upload({ data: data(), dataItemOpts, chunkingMode: 'disabled', events }),
          turbo,
        )
        t.strictSame(reported(), ofBoth)
      }
    const wrong = {
      'Target must be 32 bytes but was incorrectly 10': { target: 'target Too Short' },
      'Anchor must be 32 bytes': { anchor: 'anchor Too Short' },
    }
    for (const [message, dataItemOpts] of Object.entries(wrong))
      await t.rejects(turbo.upload({ data: 'a test string', dataItemOpts }), { message })
    for (const chunkingMode of ['disabled', 'force']) {
      const given = { data: 'a test string', chunkingMode, signal: AbortSignal.abort() }
      await t.rejects(turbo.upload(given), { name: 'AbortError' })
    }
  })

  await t.test('files: streams, paths, parts of each mode, and wallets without credits', async (t) => {
    const file = (name: string, sizeBytes: number): object => {
      const path = join(folder, name)
      const bytes = randomBytes(sizeBytes)
      writeFileSync(path, bytes)
      return { fileStreamFactory: () => createReadStream(path), fileSizeFactory: () => bytes.length }
    }
    const small = file('1KB_file', 1024)
    const large = file('1MB_file', mib)
    for (const dataItemOpts of options)
      for (const chunkingMode of ['disabled', 'force']) {
        const { events, reported } = listened()
        await owned(t, await turbo.uploadFile({ ...small, dataItemOpts, chunkingMode, events }), turbo)
        t.strictSame(reported(), ofBoth, chunkingMode)
      }
    await owned(t, await turbo.uploadFile({ file: join(folder, '1MB_file') }), turbo)
    const eleven = file('11MiB', 11 * mib)
    const auto = { chunkingMode: 'auto', dataItemOpts: { ...options[0], paidBy: address } }
    await owned(t, await turbo.uploadFile({ ...eleven, ...auto }), turbo)
    const paidBy = [address, `0x${'22'.repeat(20)}`]
    const parts = { chunkingMode: 'force', chunkByteCount: 6 * mib, maxChunkConcurrency: 10 }
    const nineteen = { ...file('19MiB', 19 * mib), ...parts, dataItemOpts: { paidBy } }
    await owned(t, await turbo.uploadFile(nineteen), turbo)
    await t.rejects(turbo.uploadFile({ ...small, signal: AbortSignal.abort() }), { name: 'AbortError' })
    const poor = fresh()
    for (const chunkingMode of ['disabled', 'force'])
      await t.rejects(poor.uploadFile({ ...large, chunkingMode }), /Insufficient balance/, chunkingMode)
    await t.rejects(poor.upload({ data: randomBytes(mib) }), /Insufficient balance/)
  })

  await t.test('signed items, by keys of each chain', async (t) => {
    const { key, owner } = ed25519Key(Buffer.alloc(32, 3))
    const secret = Buffer.from(String(key.export({ format: 'jwk' }).d), 'base64url')
    const signers: Readonly<Record<string, object>> = {
      ethereum: { signer: new EthereumSigner('07'.repeat(32)) },
      kyve: { signer: new EthereumSigner('08'.repeat(32)) },
      solana: { privateKey: encodeBase58(Buffer.concat([secret, owner])) },
    }
    for (const [token, given] of Object.entries(signers)) {
      const of = TurboFactory.authenticated({ ...services, token, ...given })
      const bytes = randomBytes(1024)
      const stream = { fileStreamFactory: () => Readable.from(bytes), fileSizeFactory: () => bytes.length }
      await owned(t, await of.uploadFile(stream), of)
    }
    for (const signer of [new ArweaveSigner(wallet), new EthereumSigner('07'.repeat(32))]) {
      const item = createData(`signed ${randomUUID()}`, signer, {})
      const unsigned = Buffer.from(item.getRaw())
      await item.sign(signer)
      const given = (bytes: Buffer, more = {}) => ({
        dataItemStreamFactory: () => bytes,
        dataItemSizeFactory: () => bytes.length,
        ...more,
      })
      const aborted = nobody.uploadSignedDataItem(given(item.getRaw(), { signal: AbortSignal.abort() }))
      await t.rejects(aborted, { name: 'AbortError' })
      await t.rejects(nobody.uploadSignedDataItem(given(unsigned)), /Status 400\): Invalid Data Item/)
      const { events, reported } = listened()
      t.equal((await nobody.uploadSignedDataItem(given(item.getRaw(), { events }))).id, item.id)
      t.strictSame(reported(), ofUpload)
      const streamed = { ...given(item.getRaw()), dataItemStreamFactory: () => Readable.from(item.getRaw()) }
      t.equal((await nobody.uploadSignedDataItem(streamed)).id, item.id, 'the same as a stream')
    }
  })

  await t.test('folders, with the index and the fallback that are there or named', async (t) => {
    const site = join(folder, 'site')
    for (const name of ['index.html', '404.html', '3.txt', 'content/4.txt', 'content/5.txt']) {
      mkdirSync(dirname(join(site, name)), { recursive: true })
      writeFileSync(join(site, name), `this is ${name}`)
    }
    const reported: string[] = []
    const tags = [{ name: 'Content-Type', value: 'total/gibberish' }]
    const first = await turbo.uploadFolder({
      folderPath: site,
      dataItemOpts: { tags },
      events: {
        onFileStart: () => reported.push('start'),
        onFileComplete: () => reported.push('complete'),
        onFileError: () => reported.push('error'),
        onFolderProgress: ({ currentPhase }: { currentPhase: string }) => reported.push(currentPhase),
        onFolderError: () => reported.push('error'),
        onFolderSuccess: () => reported.push('success'),
      },
    })
    t.equal(first.fileResponses.length, 5)
    t.equal(first.manifest.index.path, 'index.html')
    t.equal(first.manifest.fallback?.id, first.manifest.paths['404.html']?.id)
    t.equal(reported.filter((one) => one === 'start').length, 5)
    t.equal(reported.filter((one) => one === 'complete').length, 5)
    t.notOk(reported.includes('error'))
    t.ok(reported.indexOf('files') >= 0 && reported.indexOf('files') < reported.indexOf('manifest'))
    t.equal(reported.at(-1), 'success')
    const page = await fetch(`${gateway}/raw/${first.manifest.paths['3.txt']?.id}`)
    t.equal(page.headers.get('content-type'), 'total/gibberish')
    const manifestOptions = { indexFile: '3.txt', fallbackFile: 'content/4.txt' }
    const named = await turbo.uploadFolder({ folderPath: site, manifestOptions })
    t.equal(named.manifest.index.path, '3.txt')
    t.equal(named.manifest.fallback?.id, named.manifest.paths['content/4.txt']?.id)
    const shown = async (path: string): Promise<string> =>
      (await fetch(`${gateway}/${named.manifestResponse.id}/${path}`)).text()
    t.equal(await shown(''), 'this is 3.txt')
    t.equal(await shown('no/such/file'), 'this is content/4.txt')
  })

  await t.test('shared credits, in the words and the order of the network', async (t) => {
    const friend = '43CharArweaveStubAddress1234567890123456789'
    const start = BigInt((await turbo.getBalance()).winc)
    const share = (more: object = {}): Promise<Approval> =>
      turbo.shareCredits({ approvedWincAmount: '100', approvedAddress: friend, ...more })
    const balance = async (winc: bigint, given: number): Promise<void> => {
      const reported = await turbo.getBalance()
      t.match(reported, { winc: String(winc), effectiveBalance: String(winc), controlledWinc: String(start) })
      t.equal(reported.givenApprovals.length, given)
      t.equal(reported.receivedApprovals.length, 0)
    }
    const oldest = await share()
    t.equal(oldest.payingAddress, address)
    await balance(start - 100n, 1)
    await share({ expiresBySeconds: 1 })
    t.ok(
      await eventually(
        'one approval is left',
        async () => (await turbo.getBalance()).givenApprovals.length === 1,
      ),
      'it ends',
    )
    await balance(start - 100n, 1)
    const unable = 'Failed to upload file after 1 attempts\nFailed request (Status 400): Unable to'
    const messages: readonly (readonly [() => Promise<unknown>, string])[] = [
      [
        () => share({ approvedAddress: 'invalidAddress' }),
        'create delegated payment approval : Invalid approved address',
      ],
      [
        () => share({ approvedWincAmount: String(start * 2n) }),
        `create delegated payment approval : Insufficient balance for '${address}'`,
      ],
      [
        () => turbo.revokeCredits({ revokedAddress: somebody }),
        'revoke delegated payment approval : No valid approvals found ' +
          `for approved address '${somebody}' and paying address '${address}'`,
      ],
    ]
    for (const [act, message] of messages) await t.rejects(act(), { message: `${unable} ${message}` })
    const endless = await share()
    const far = await share({ expiresBySeconds: 10_000 })
    const near = await share({ expiresBySeconds: 1000 })
    t.strictSame(
      (await turbo.getCreditShareApprovals()).givenApprovals.map((one) => one.approvalDataItemId),
      [near, far, oldest, endless].map((one) => one.approvalDataItemId),
    )
    t.strictSame((await nobody.getCreditShareApprovals({ userAddress: somebody })).givenApprovals, [])
    await turbo.revokeCredits({ revokedAddress: friend })
    await balance(start, 0)

    const guest = fresh()
    const guestAddress = await guest.signer.getNativeAddress()
    await share({ approvedAddress: guestAddress, approvedWincAmount: String(10n ** 13n) })
    t.match(await guest.getBalance(), { winc: '0', effectiveBalance: String(10n ** 13n) })
    let left = 10n ** 13n
    for (const paidBy of [address, [guestAddress, address]]) {
      // Another anchor, and so another item: the same one is paid for once.
      const dataItemOpts = { paidBy, anchor: randomBytes(16).toString('hex') }
      const { winc } = await guest.uploadFile({ file: join(folder, '1MB_file'), dataItemOpts })
      t.not(winc, '0')
      left -= BigInt(winc)
      t.match(await guest.getBalance(), { winc: '0', effectiveBalance: String(left) })
    }
    t.match(await turbo.getBalance(), { controlledWinc: String(start - 10n ** 13n + left) })
  })
})
