/** Credits sent to others, as clients of the network do it: their own library and its command line, unmodified. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { isSigned, type Receipt } from '../flow/receipts.js'
import { run } from '../flow/running.js'
import { quickTransfers, withoutTurbo as skip, turboCommandPath, turboLibrary } from '../flow/turbo.js'

const jwk = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))
const shortWaits = new URL('../flow/short-waits.js', import.meta.url).href

interface Approval {
  readonly approvalDataItemId: string
  readonly approvedAddress: string
  readonly approvedWincAmount: string
  readonly usedWincAmount: string
  readonly expirationDate?: string
}

interface Turbo {
  upload(given: object): Promise<Receipt>
  getBalance(address?: string): Promise<{ winc: string; controlledWinc: string; effectiveBalance: string }>
  topUpWithTokens(given: object): Promise<{ id: string; winc: string }>
  shareCredits(given: object): Promise<Approval>
  revokeCredits(given: object): Promise<Approval[]>
  getCreditShareApprovals(given: {
    userAddress: string
  }): Promise<{ givenApprovals: Approval[]; receivedApprovals: Approval[] }>
}

interface Library {
  readonly TurboFactory: { authenticated(given: object): Turbo }
  readonly ArweaveSigner: new (jwk: object) => object
  readonly EthereumSigner: new (key: string) => object
}

const settings = {
  DEVNET_SEED: 'false',
  DEVNET_BLOCK_MS: '500',
  PAYMENT_ARWEAVE_CONFIRMATIONS: '2',
  PAYMENT_RECHECK_SECONDS: '1',
}

const stranger = (): string => randomBytes(32).toString('base64url')

t.test('a top-up for another wallet, shared credits, and the command line', { skip }, async (t) => {
  const { TurboFactory, ArweaveSigner, EthereumSigner } = await turboLibrary<Library>()
  const { urls } = await run(t, t.testdir(), settings)
  const { payment = '', upload = '', devnet = '', gateway = '' } = urls
  const wallet = knownWallet()
  const owner = await clientOf(devnet).wallets.jwkToAddress(wallet)
  await fetch(`${devnet}/mint/${owner}/1000000000000000`)
  const turbo = TurboFactory.authenticated({
    paymentServiceConfig: { url: payment },
    uploadServiceConfig: { url: upload },
    gatewayUrl: gateway,
    token: 'arweave',
    signer: new ArweaveSigner(wallet),
    tokenTools: await quickTransfers(gateway),
  })
  const wincOf = async (address: string): Promise<string> => (await turbo.getBalance(address)).winc

  const friend = stranger()
  await t.test('tokens of the chain, credited to another wallet than the one that sent them', async (t) => {
    const sent = await turbo.topUpWithTokens({
      tokenAmount: 1_000_000,
      turboCreditDestinationAddress: friend,
    })
    t.equal(sent.winc, '766000')
    await eventually('the friend has the credits', async () => (await wincOf(friend)) === '766000')
    t.equal(await wincOf(owner), '0')
  })

  const command = async (...words: string[]): Promise<string> => {
    const places = ['--payment-url', payment, '--upload-url', upload, '--gateway', gateway]
    const given = [
      '--import',
      shortWaits,
      turboCommandPath,
      ...words,
      '--token',
      'arweave',
      '--quiet',
      ...places,
    ]
    const environment = { PATH: process.env.PATH ?? '' }
    const { stdout } = await promisify(execFile)(process.execPath, given, { env: environment })
    return stdout
  }
  const mine = ['--wallet-file', jwk]

  await t.test('the command line puts credits into its own wallet', async (t) => {
    const printed = await command('crypto-fund', '--value', '0.01', '--skip-confirmation', ...mine)
    t.match(printed, /"winc": "7660000000"/)
    await eventually('the owner has the credits', async () => (await wincOf(owner)) === '7660000000')
    t.match(await command('balance', ...mine), /0\.00766/)
    const { payments } = JSON.parse(await command('payment-history', ...mine)) as { payments: object[] }
    t.match(payments, [{ type: 'crypto', tokenType: 'arweave', wincCredited: '7660000000' }])
    t.equal(payments.length, 1, 'what went to another wallet is no payment into this one')
  })

  await t.test('the library shares credits, lists them, and takes them back', async (t) => {
    const given = { approvedAddress: friend, approvedWincAmount: 1_000_000, expiresBySeconds: 3600 }
    const approval = await turbo.shareCredits(given)
    t.match(approval, { approvedAddress: friend, approvedWincAmount: '1000000', usedWincAmount: '0' })
    t.ok(Date.parse(approval.expirationDate ?? '') > Date.now())
    t.match(await turbo.getBalance(), { winc: '7659000000', controlledWinc: '7660000000' })
    t.match(await turbo.getBalance(friend), { winc: '766000', effectiveBalance: '1766000' })
    const { approvalDataItemId } = approval
    const listed = await turbo.getCreditShareApprovals({ userAddress: owner })
    t.match(listed, { givenApprovals: [{ approvalDataItemId }], receivedApprovals: [] })
    const tooMuch = { approvedAddress: friend, approvedWincAmount: 10_000_000_000 }
    await t.rejects(turbo.shareCredits(tooMuch), /Unable to create delegated payment approval : Insufficient/)
    const revoked = await turbo.revokeCredits({ revokedAddress: friend })
    t.strictSame(
      revoked.map((one) => one.approvalDataItemId),
      [approvalDataItemId],
    )
    t.match(await turbo.getBalance(), { winc: '7660000000', controlledWinc: '7660000000' })
    await t.rejects(turbo.revokeCredits({ revokedAddress: friend }), /No valid approvals found/)
  })

  await t.test('the command line does the same', async (t) => {
    t.match(await command('share-credits', '--address', friend, '--value', '0.001', ...mine), /"1000000000"/)
    t.equal(await wincOf(owner), '6660000000')
    t.match(await command('list-shares', ...mine), new RegExp(friend))
    t.match(await command('revoke-credits', '--address', friend, ...mine), /"1000000000"/)
    t.equal(await wincOf(owner), '7660000000')
  })

  await t.test('another wallet uploads with shared credits, in the order that it names', async (t) => {
    const guest = TurboFactory.authenticated({
      paymentServiceConfig: { url: payment },
      uploadServiceConfig: { url: upload },
      token: 'ethereum',
      signer: new EthereumSigner('09'.repeat(32)),
    })
    const { address } = privateKeyToAccount(`0x${'09'.repeat(32)}`)
    const data = randomBytes(400_000)
    const without = guest.upload({ data, dataItemOpts: { anchor: 'w'.repeat(32) } })
    await t.rejects(without, /Failed request \(Status 402\)/)
    await turbo.shareCredits({ approvedAddress: address, approvedWincAmount: 2_000_000_000 })
    const before = BigInt((await turbo.getBalance()).controlledWinc)
    const paid = await guest.upload({ data, dataItemOpts: { paidBy: [friend, owner] } })
    t.ok(BigInt(paid.winc) > 0n)
    t.ok(isSigned(paid))
    await eventually(
      'the payer is charged',
      async () => BigInt((await turbo.getBalance()).controlledWinc) === before - BigInt(paid.winc),
    )
    const { givenApprovals } = await turbo.getCreditShareApprovals({ userAddress: owner })
    t.match(givenApprovals, [{ approvedAddress: address, usedWincAmount: paid.winc }])
    t.equal(await wincOf(friend), '766000', 'who shares nothing with it pays nothing')
    const served = await fetch(`${gateway}/raw/${paid.id}`)
    t.ok(Buffer.from(await served.arrayBuffer()).equals(data))
  })
})
